//! What stands in a Project's folder: Descriptors, damaged ones, and what nobody knows.

use std::collections::HashSet;

use warren_disk::text;
use warren_model::{Descriptor, DirName};

use super::folder::{Folder, WORKSPACE_FILE, is_ours};
use crate::error::Error;

/// What stands in a Project's folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Descriptors that can be read, by dirName.
    pub(super) descriptors: Vec<Descriptor>,
    /// Descriptors that cannot.
    pub(super) damaged: Vec<Damage>,
    /// Entries that no Descriptor knows, escaped.
    pub(super) orphans: Vec<String>,
}

/// A file of ours that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Damage {
    /// File name in the folder.
    pub(super) file: String,
    /// What is wrong with it.
    pub(super) reason: String,
}

impl Folder {
    /// Everything in the folder, by name.
    pub(super) fn list(&self) -> Result<Listing, Error> {
        let doing = || format!("list the folder of project `{}`", self.key());
        let mut names = Vec::new();
        for entry in self.dir().entries().map_err(Error::io(doing()))? {
            let entry = entry.map_err(Error::io(doing()))?;
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            names.push((entry.file_name(), is_file));
        }
        names.sort();
        let mut listing = Listing::default();
        let mut folders = Vec::new();
        for (name, is_file) in &names {
            use std::os::unix::ffi::OsStrExt;
            let shown = text::escape(name.as_bytes());
            let Some(name) = name.to_str() else {
                listing.orphans.push(shown);
                continue;
            };
            if name == WORKSPACE_FILE || (*is_file && is_ours(name)) {
                continue;
            }
            match name.strip_suffix(".json").map(str::parse::<DirName>) {
                Some(Ok(dir_name)) => self.list_descriptor(name, &dir_name, &mut listing)?,
                Some(Err(_)) => listing.orphans.push(shown),
                None => folders.push(name.to_owned()),
            }
        }
        let known: HashSet<&str> = listing
            .descriptors
            .iter()
            .map(|d| d.dir_name.as_str())
            .chain(
                listing
                    .damaged
                    .iter()
                    .filter_map(|d| d.file.strip_suffix(".json")),
            )
            .collect();
        let strangers = folders.iter().filter(|name| !known.contains(name.as_str()));
        let strangers: Vec<String> = strangers
            .map(|name| text::escape(name.as_bytes()))
            .collect();
        listing.orphans.extend(strangers);
        Ok(listing)
    }

    fn list_descriptor(
        &self,
        file: &str,
        dir_name: &DirName,
        listing: &mut Listing,
    ) -> Result<(), Error> {
        let found = match self.read(file) {
            Ok(Some(bytes)) => self.parse_descriptor(dir_name, &bytes),
            // Disposed of since the folder was listed.
            Ok(None) => return Ok(()),
            Err(Error::Damaged { reason, .. }) => Err(reason),
            Err(error) => return Err(error),
        };
        match found {
            Ok(descriptor) => listing.descriptors.push(descriptor),
            Err(reason) => listing.damaged.push(Damage {
                file: file.to_owned(),
                reason,
            }),
        }
        Ok(())
    }

    /// Names that are taken, folded: of Descriptors and of folders.
    pub(super) fn taken(&self) -> Result<Vec<String>, Error> {
        let doing = || format!("list the folder of project `{}`", self.key());
        let mut taken = Vec::new();
        for entry in self.dir().entries().map_err(Error::io(doing()))? {
            let name = entry.map_err(Error::io(doing()))?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Ok(name) = name
                .strip_suffix(".json")
                .unwrap_or(name)
                .parse::<DirName>()
            {
                taken.push(name.folded());
            }
        }
        Ok(taken)
    }
}
