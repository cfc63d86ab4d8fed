//! The functions of `wasi:filesystem/types`.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use warren_disk::beneath::{Kind, Stat};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream,
    ErrorCode, Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi_io::streams::{DynInputStream, DynOutputStream};

use super::links::{self, Place};
use super::stream::{FileStream, WriteFailed, Writer, code};
use super::{FilesView, LISTED_MAX, refused};

type Fd = Resource<Descriptor>;

/// The same handle once more: only the number is copied.
fn again(fd: &Fd) -> Fd {
    Resource::new_borrow(fd.rep())
}

impl FilesView<'_> {
    fn dir(&self, fd: &Fd) -> FsResult<&Dir> {
        match self.wasi.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, fd: &Fd) -> FsResult<&wasmtime_wasi::filesystem::File> {
        match self.wasi.table.get(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// The directory behind a handle, to be written in; none: it may not be, which WASI then says.
    fn writable(&self, fd: &Fd) -> FsResult<Option<Arc<File>>> {
        let dir = self.dir(fd)?;
        Ok((!dir.perms.write_not_permitted()).then(|| Arc::clone(&dir.dir)))
    }

    /// Whoever writes here does so beneath the root that was preopened.
    fn root(&self) -> FsResult<Stat> {
        Ok(self.call.root.ok_or(ErrorCode::NotPermitted)?)
    }

    /// Takes an inode for what is about to be made.
    async fn take_inode(&mut self) -> FsResult<()> {
        self.call.measure().await?;
        let taken = self.call.budget().take(0, 1);
        Ok(taken.map_err(|short| refused(&short))?)
    }

    /// Counts what was made, or gives its inode back.
    fn made<T>(&mut self, result: FsResult<T>, place: Option<&Place>) -> FsResult<T> {
        match result {
            Ok(made) => {
                self.call.made += 1;
                // A directory, or a long link, takes bytes too.
                let bytes = place.and_then(|place| place.stat().ok());
                let bytes = bytes.map_or(0, |stat| stat.bytes_allocated());
                self.call.budget().charge(bytes, 0);
                Ok(made)
            }
            Err(error) => {
                self.call.budget().give_back(0, 1);
                let code = error.downcast().map_err(FsError::trap)?;
                if code == ErrorCode::InsufficientSpace {
                    self.call.budget().note_full();
                }
                Err(code.into())
            }
        }
    }

    /// Counts a name that is gone; `before` is what had it.
    fn removed(&mut self, before: Option<Stat>) {
        self.call.removed += 1;
        if let Some(stat) = before {
            self.call.ledger.removed(&stat);
        }
    }

    /// Notes an error that a guest should not have provoked.
    fn note<T>(&mut self, path: &str, result: FsResult<T>) -> FsResult<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => {
                let code = error.downcast().map_err(FsError::trap)?;
                if matches!(code, ErrorCode::NotPermitted | ErrorCode::Unsupported) {
                    self.call.report_refused(self.label, self.trail, path);
                }
                Err(code.into())
            }
        }
    }

    async fn open(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        mut open_flags: OpenFlags,
        mut flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let found = self
            .wasi
            .stat_at(again(&fd), path_flags, path.clone())
            .await;
        // Opening a FIFO waits for its other end, which no deadline could interrupt, and a device
        // is no content. Whatever else is wrong is better said by opening it.
        if let Ok(stat) = &found
            && !is_plain(stat.type_)
        {
            return Err(ErrorCode::Unsupported.into());
        }
        let truncates = open_flags.contains(OpenFlags::TRUNCATE);
        let writes = truncates
            || open_flags.contains(OpenFlags::CREATE)
            || flags.contains(DescriptorFlags::WRITE);
        let may_write = self.writable(&fd)?.is_some();
        if writes && may_write {
            self.call.measure().await?;
        }
        let makes = found.is_err() && open_flags.contains(OpenFlags::CREATE) && may_write;
        if truncates && may_write && !open_flags.contains(OpenFlags::DIRECTORY) {
            // Cut once it is open, so that what it had is known.
            open_flags &= !OpenFlags::TRUNCATE;
            flags |= DescriptorFlags::WRITE;
        }
        if makes {
            self.take_inode().await?;
        }
        let opened = self
            .wasi
            .open_at(fd, path_flags, path, open_flags, flags)
            .await;
        let opened = if makes {
            self.made(opened, None)?
        } else {
            opened?
        };
        match self.opened(&opened, truncates && may_write) {
            Ok(()) => Ok(opened),
            Err(error) => {
                self.close(opened).map_err(FsError::trap)?;
                Err(error)
            }
        }
    }

    /// Notes a file that was opened, and cuts it.
    fn opened(&mut self, fd: &Fd, truncate: bool) -> FsResult<()> {
        let Descriptor::File(file) = self.wasi.table.get(fd)? else {
            return Ok(());
        };
        let file = Arc::clone(&file.file);
        let account = self.call.ledger.opened(&file)?;
        if truncate {
            file.set_len(0)?;
            if let Some(account) = account {
                account.settle(self.call.budget(), &file)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, fd: Fd) -> wasmtime::Result<()> {
        match self.wasi.table.delete(fd)? {
            Descriptor::File(file) => {
                let file = file.file;
                if let Some(account) = self.call.ledger.find(&file)? {
                    self.call.ledger.close(&account, file);
                }
            }
            Descriptor::Dir(_) => {}
        }
        Ok(())
    }

    fn writer(&self, fd: &Fd, at: Option<u64>) -> FsResult<Writer> {
        let file = self.file(fd)?;
        if file.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let file = Arc::clone(&file.file);
        let account = self.call.account(&file)?;
        Ok(Writer::new(
            file,
            account,
            Arc::clone(&self.call.ledger),
            at,
        ))
    }

    /// A stream is a handle on the file too.
    fn stream(&mut self, fd: &Fd, at: Option<u64>) -> FsResult<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(FileStream::new(self.writer(fd, at)?));
        Ok(self.wasi.table.push(stream)?)
    }

    /// Checks that what is moved or linked from one place to another can not lead out from there;
    /// says what it is and where it goes.
    async fn check_move(
        &mut self,
        from: (&File, &str),
        to: (&File, &str),
    ) -> FsResult<(Stat, Place)> {
        let root = self.root()?;
        let (from, to) = (Place::of(from.0, from.1)?, Place::of(to.0, to.1)?);
        let stat = from.stat()?;
        if stat.kind != Kind::Dir {
            let fine = links::may_move(&from, &to, &root)?;
            return moved(fine, stat, to);
        }
        // The whole tree may have to be looked at.
        let job = self.call.jobs.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let fine = links::may_move(&from, &to, &root);
            drop(job);
            fine.map(|fine| (fine, to))
        });
        match checked.await {
            Ok(Ok((fine, to))) => moved(fine, stat, to),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ErrorCode::Io.into()),
        }
    }
}

fn moved(fine: bool, stat: Stat, to: Place) -> FsResult<(Stat, Place)> {
    if fine {
        Ok((stat, to))
    } else {
        Err(ErrorCode::NotPermitted.into())
    }
}

fn is_plain(kind: DescriptorType) -> bool {
    matches!(
        kind,
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
    )
}

impl Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        let found = self.wasi.table.get(&error)?;
        if let Some(WriteFailed(code)) = found.downcast_ref() {
            return Ok(Some(*code));
        }
        self.wasi.filesystem_error_code(error)
    }
}

impl HostDescriptor for FilesView<'_> {
    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.writer(&fd, Some(offset))?.write_all(&bytes)?;
        Ok(bytes.len() as u64)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.stream(&fd, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.stream(&fd, None)
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let file = self.file(&fd)?;
        let permitted = !file.perms.write_not_permitted();
        let file = Arc::clone(&file.file);
        let account = self.call.account(&file)?.filter(|_| permitted);
        if account.is_some() {
            let fits = self.call.ledger.fits(&Stat::of(&*file)?, Some(size), 0);
            fits.map_err(|short| refused(&short))?;
        }
        self.wasi.set_size(fd, size).await?;
        if let Some(account) = account {
            account.settle(self.call.budget(), &file)?;
        }
        Ok(())
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let opened = self
            .open(fd, path_flags, path.clone(), open_flags, flags)
            .await;
        self.note(&path, opened)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let Some(dir) = self.writable(&fd)? else {
            return self.wasi.create_directory_at(fd, path).await;
        };
        self.take_inode().await?;
        let made = self.wasi.create_directory_at(fd, path.clone()).await;
        let place = Place::of(&dir, &path).ok();
        let made = self.made(made, place.as_ref());
        self.note(&path, made)
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let Some(dir) = self.writable(&fd)? else {
            return self.wasi.symlink_at(fd, target, path).await;
        };
        let root = self.root()?;
        let place = Place::of(&dir, &path)?;
        if !links::stays(target.as_ref(), place.depth(&root)?) {
            return self.note(&path, Err(ErrorCode::NotPermitted.into()));
        }
        self.take_inode().await?;
        let made = self.wasi.symlink_at(fd, target, path.clone()).await;
        let made = self.made(made, Some(&place));
        self.note(&path, made)
    }

    async fn link_at(
        &mut self,
        fd: Fd,
        old_path_flags: PathFlags,
        old_path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let dirs = (self.writable(&fd)?, self.writable(&new_fd)?);
        if let (Some(from), Some(to)) = &dirs {
            let checked = self.check_move((from, &old_path), (to, &new_path)).await;
            self.note(&new_path, checked)?;
        }
        let linked = self
            .wasi
            .link_at(fd, old_path_flags, old_path, new_fd, new_path.clone())
            .await;
        if linked.is_ok() {
            self.call.made += 1;
        }
        self.note(&new_path, linked)
    }

    async fn rename_at(
        &mut self,
        fd: Fd,
        old_path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let mut replaced = None;
        let dirs = (self.writable(&fd)?, self.writable(&new_fd)?);
        if let (Some(from), Some(to)) = &dirs {
            let checked = self.check_move((from, &old_path), (to, &new_path)).await;
            let (source, target) = self.note(&new_path, checked)?;
            // Two names of one file: a rename leaves both.
            replaced = target
                .stat()
                .ok()
                .filter(|stat| (stat.dev, stat.ino) != (source.dev, source.ino));
        }
        let renamed = self
            .wasi
            .rename_at(fd, old_path, new_fd, new_path.clone())
            .await;
        if renamed.is_ok() && replaced.is_some() {
            self.removed(replaced);
        }
        self.note(&new_path, renamed)
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let before = match self.writable(&fd)? {
            Some(dir) => Place::of(&dir, &path).and_then(|place| place.stat()).ok(),
            None => None,
        };
        let removed = self.wasi.unlink_file_at(fd, path.clone()).await;
        if removed.is_ok() {
            self.removed(before);
        }
        self.note(&path, removed)
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let before = match self.writable(&fd)? {
            Some(dir) => Place::of(&dir, &path).and_then(|place| place.stat()).ok(),
            None => None,
        };
        let removed = self.wasi.remove_directory_at(fd, path.clone()).await;
        if removed.is_ok() {
            self.removed(before);
        }
        self.note(&path, removed)
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = Arc::clone(&self.dir(&fd)?.dir);
        let held: u64 = self.call.listed.values().sum();
        // WASI reads them all into memory at once.
        let entries = count_entries(&dir, LISTED_MAX - held.min(LISTED_MAX))?;
        let Some(entries) = entries else {
            return Err(ErrorCode::InsufficientMemory.into());
        };
        let stream = self.wasi.read_directory(fd).await?;
        self.call.listed.insert(stream.rep(), entries);
        Ok(stream)
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.close(fd)
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.wasi.set_times(fd, accessed, modified).await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let set = self
            .wasi
            .set_times_at(fd, path_flags, path.clone(), accessed, modified)
            .await;
        self.note(&path, set)
    }

    async fn stat_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let found = self.wasi.stat_at(fd, path_flags, path.clone()).await;
        self.note(&path, found)
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let found = self.wasi.readlink_at(fd, path.clone()).await;
        self.note(&path, found)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.wasi.metadata_hash_at(fd, path_flags, path).await
    }

    async fn advise(
        &mut self,
        fd: Fd,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.wasi.advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.wasi.sync_data(fd).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.wasi.sync(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        self.wasi.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        self.wasi.get_type(fd).await
    }

    async fn read(
        &mut self,
        fd: Fd,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.wasi.read(fd, length, offset).await
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.wasi.read_via_stream(fd, offset)
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        self.wasi.stat(fd).await
    }

    async fn is_same_object(&mut self, a: Fd, b: Fd) -> wasmtime::Result<bool> {
        self.wasi.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        self.wasi.metadata_hash(fd).await
    }
}

impl HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.wasi.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.call.listed.remove(&stream.rep());
        HostDirectoryEntryStream::drop(&mut self.wasi, stream)
    }
}

/// Entries of a directory; none: there are more than `most`.
fn count_entries(dir: &File, most: u64) -> Result<Option<u64>, ErrorCode> {
    let mut count = 0;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let failed = |error: rustix::io::Errno| code(&error.into());
    let opened = rustix::fs::openat(dir, ".", flags, Mode::empty()).map_err(failed)?;
    for entry in rustix::fs::Dir::new(opened).map_err(failed)? {
        entry.map_err(failed)?;
        count += 1;
        if count > most {
            return Ok(None);
        }
    }
    Ok(Some(count))
}
