//! Wheels and source archives, so that no index of the world has to be asked for one.

use std::path::{Path, PathBuf};
use std::process::Command;

const WHEEL: &str = "
import sys, zipfile
path, name, version, value = sys.argv[1:]
info = f'{name}-{version}.dist-info'
files = {
    f'{name}.py': f'VALUE = {value!r}\\n',
    f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',
    f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: kit\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
}
files[f'{info}/RECORD'] = ''.join(f'{f},,\\n' for f in files) + f'{info}/RECORD,,\\n'
with zipfile.ZipFile(path, 'w') as z:
    for f, text in files.items():
        z.writestr(f, text)
";

const SDIST: &str = "
import io, sys, tarfile
path, name, code = sys.argv[1:]
backend = 'import os, sys, zipfile\\nVALUE = None\\n' + code + f'''
def build_wheel(directory, config_settings=None, metadata_directory=None):
    info = '{name}-0.1.dist-info'
    files = {{
        '{name}.py': f'VALUE = {{VALUE!r}}\\\\n',
        f'{{info}}/METADATA': 'Metadata-Version: 2.1\\\\nName: {name}\\\\nVersion: 0.1\\\\n',
        f'{{info}}/WHEEL': 'Wheel-Version: 1.0\\\\nGenerator: kit\\\\nRoot-Is-Purelib: true\\\\nTag: py3-none-any\\\\n',
    }}
    files[f'{{info}}/RECORD'] = ''.join(f'{{f}},,\\\\n' for f in files) + f'{{info}}/RECORD,,\\\\n'
    wheel = '{name}-0.1-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(directory, wheel), 'w') as z:
        for f, text in files.items():
            z.writestr(f, text)
    return wheel
'''
files = {
    'pyproject.toml': '[build-system]\\nrequires = []\\nbuild-backend = \"backend\"\\nbackend-path = [\".\"]\\n'
        f'[project]\\nname = \"{name}\"\\nversion = \"0.1\"\\n',
    'PKG-INFO': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 0.1\\n',
    'backend.py': backend,
}
with tarfile.open(path, 'w:gz') as t:
    for f, text in files.items():
        info = tarfile.TarInfo(f'{name}-0.1/{f}')
        info.size = len(text.encode())
        t.addfile(info, io.BytesIO(text.encode()))
";

/// Makes `<name>-0.1-py3-none-any.whl` in `dir`, with one module of that name whose `VALUE` is
/// `value`; its path.
///
/// # Panics
///
/// When there is no `python3` on the `PATH`.
pub fn wheel(dir: &Path, name: &str, value: &str) -> PathBuf {
    wheel_of(dir, name, "0.1", value)
}

/// The same of another version.
///
/// # Panics
///
/// When there is no `python3` on the `PATH`.
pub fn wheel_of(dir: &Path, name: &str, version: &str, value: &str) -> PathBuf {
    let path = dir.join(format!("{name}-{version}-py3-none-any.whl"));
    run(WHEEL, &path, &[name, version, value]);
    path
}

/// Makes `<name>-0.1.tar.gz` in `dir`: sources that need nothing but Python to be built, by a build
/// that runs `code` first. The module `name` gets the `VALUE` that the code has set; its path.
///
/// # Panics
///
/// When there is no `python3` on the `PATH`.
pub fn sdist(dir: &Path, name: &str, code: &str) -> PathBuf {
    let path = dir.join(format!("{name}-0.1.tar.gz"));
    run(SDIST, &path, &[name, code]);
    path
}

fn run(script: &str, path: &Path, more: &[&str]) {
    let status = Command::new("python3")
        .args(["-I", "-c", script])
        .arg(path)
        .args(more)
        .status()
        .expect("python3 is on the PATH");
    assert!(status.success(), "`{}` is made", path.display());
}
