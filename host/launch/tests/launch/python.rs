//! Pythons of the system and of a version manager, confined: what people do with them works.

use std::path::PathBuf;

use warren_process::{Layer, ProxyStart};

use crate::kit::{Place, launcher};

/// Everything happens in the working directory, without a network.
const SCRIPT: &str = r#"
import os, pathlib, subprocess, sys, zipfile, tarfile, io, textwrap
def run(*a, **k):
    done = subprocess.run(a, capture_output=True, text=True, **k)
    if done.returncode: sys.exit(f'{a}: {done.stdout}\n{done.stderr}')
    return done.stdout
run(sys.executable, '-I', '-m', 'venv', '.venv')
venv = './.venv/bin/python'
with zipfile.ZipFile('wheely-1.0-py3-none-any.whl', 'w') as w:
    w.writestr('wheely/__init__.py', 'def main(): print(42)\n')
    w.writestr('wheely-1.0.data/data/share/wheely/table', 'data\n')
    w.writestr('wheely-1.0.dist-info/entry_points.txt', '[console_scripts]\nwheely = wheely:main\n')
    w.writestr('wheely-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: wheely\nVersion: 1.0\n')
    w.writestr('wheely-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    w.writestr('wheely-1.0.dist-info/RECORD', '')
run(venv, '-I', '-m', 'pip', 'install', '--no-index', './wheely-1.0-py3-none-any.whl')
assert run('.venv/bin/wheely') == '42\n'
with tarfile.open('sdisty-1.0.tar.gz', 'w:gz') as t:
    for name, text in [('pyproject.toml', '''
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "sdisty"
version = "1.0"
'''), ('backend.py', '''
import subprocess, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    made = subprocess.run(['/usr/bin/env', 'echo', '43'], capture_output=True, text=True, check=True)
    name = 'sdisty-1.0-py3-none-any.whl'
    with zipfile.ZipFile(f'{folder}/{name}', 'w') as w:
        w.writestr('sdisty.py', f'answer = {made.stdout}')
        w.writestr('sdisty-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: sdisty\\nVersion: 1.0\\n')
        w.writestr('sdisty-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        w.writestr('sdisty-1.0.dist-info/RECORD', '')
    return name
'''), ('PKG-INFO', 'Metadata-Version: 2.1\nName: sdisty\nVersion: 1.0\n')]:
        info = tarfile.TarInfo('sdisty-1.0/' + name); info.size = len(text)
        t.addfile(info, io.BytesIO(text.encode()))
run(venv, '-I', '-m', 'pip', 'install', '--no-index', './sdisty-1.0.tar.gz')
assert run(venv, '-c', 'import sdisty; print(sdisty.answer)') == '43\n'
run(venv, '-I', '-m', 'pip', 'uninstall', '-y', 'wheely')
pathlib.Path('use.py').write_text(textwrap.dedent('''
    import hashlib, multiprocessing, queue, shutil, sqlite3, ssl, subprocess, tempfile, threading
    import ctypes, lzma, bz2, zlib, socket, asyncio, decimal, uuid, random, locale, getpass, mimetypes
    def double(n): return 2 * n
    if __name__ == '__main__':
        with multiprocessing.Pool(2) as pool: assert pool.map(double, [1, 2]) == [2, 4]
        q = multiprocessing.Queue(); multiprocessing.Process(target=q.put, args=(7,)).start(); assert q.get() == 7
        with multiprocessing.Manager() as m: d = m.dict(); d['a'] = 1; assert d['a'] == 1
        c = sqlite3.connect('db.sqlite'); c.execute('pragma journal_mode=wal'); c.execute('create table t (a)')
        c.execute('insert into t values (1)'); c.commit(); c.close()
        assert ssl.create_default_context().get_ca_certs() is not None
        t = threading.Thread(target=lambda: None); t.start(); t.join()
        with tempfile.TemporaryDirectory() as d: shutil.move('use.py', d); shutil.move(d + '/use.py', 'use.py')
        a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
        assert asyncio.run(asyncio.sleep(0, 5)) == 5
        assert getpass.getuser(); assert mimetypes.guess_type('a.png')[0] == 'image/png'
        assert subprocess.run(['sh', '-c', 'exit 3']).returncode == 3
'''))
run(venv, 'use.py')
print('done', sys.version_info[:2])
"#;

#[tokio::test]
async fn pythons_of_the_system_and_of_a_version_manager_work() {
    let mut pythons = vec![PathBuf::from("/usr/bin/python3")];
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    for version in ["3.11.7", "3.13.0"] {
        pythons.push(home.join(format!(".pyenv/versions/{version}/bin/python3")));
    }
    let mut tried = 0;
    for path in pythons.iter().filter(|path| path.exists()) {
        let place = Place::new();
        let python = place.python(path.to_str().unwrap());
        let mut command = place.command(&python, &["-I", "-c", SCRIPT]);
        command.confinement = place.confinement();
        let output = launcher(true).run(command, None).await.unwrap();
        if !output.isolation.has(Layer::PrivateRoot) {
            return;
        }
        let (text, error) = (output.stdout.text(), output.stderr.text());
        assert!(text.contains("done"), "{}: {text}{error}", path.display());
        tried += 1;
    }
    assert!(tried > 0);
}

#[tokio::test]
async fn git_keeps_house() {
    let place = Place::new();
    let script = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a \
        GIT_COMMITTER_EMAIL=a; git init -q .; for n in 1 2 3; do echo $n > f; git add f; \
        git commit -qm $n; done; git gc -q --aggressive; git repack -adq; git fsck; \
        git mv f g; git worktree add -q w; git log --oneline | wc -l";
    let output = launcher(true)
        .run(place.confined(script), None)
        .await
        .unwrap();
    if output.stderr.text().contains("git: not found") {
        return;
    }
    assert_eq!(output.stdout.text(), "3\n", "{}", output.stderr.text());
}

#[tokio::test]
async fn the_network_is_a_proxy_of_the_host_or_nothing() {
    let place = Place::new();
    let python = place.python("/usr/bin/python3");
    let script = "import socket\nfor port in (3128, 3129):\n  s = socket.socket(); s.settimeout(5)\n  \
        try: s.connect(('127.0.0.1', port)); s.send(b'hello'); print(port, s.recv(5))\n  \
        except OSError as e: print(port, e.errno)\n\
        try: socket.create_server(('127.0.0.1', 3130))\nexcept OSError as e: print(e.errno)";
    for served in [true, false] {
        let mut command = place.command(&python, &["-I", "-c", script]);
        command.confinement = place.confinement();
        if let (warren_process::Confinement::Confined(confined), true) =
            (&mut command.confinement, served)
        {
            confined.proxy = Some(ProxyStart::new(|socket| {
                let socket = tokio::net::TcpListener::from_std(socket)?;
                Ok(tokio::spawn(echo(socket)))
            }));
        }
        let output = launcher(true).run(command, None).await.unwrap();
        assert!(output.isolation.has(Layer::NetworkNamespace));
        let expected = match served {
            // Ports that no rule names: not permitted, however empty they are.
            true => "3128 b'hello'\n3129 13\n13\n",
            false => "3128 13\n3129 13\n13\n",
        };
        assert_eq!(output.stdout.text(), expected, "{}", output.stderr.text());
    }
}

async fn echo(socket: tokio::net::TcpListener) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut stream, _) = socket.accept().await.unwrap();
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
}
