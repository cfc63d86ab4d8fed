//! Wheels, so that no index has to be asked for one.

use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = "
import sys, zipfile
path, name, value = sys.argv[1:]
info = f'{name}-0.1.dist-info'
files = {
    f'{name}.py': f'VALUE = {value!r}\\n',
    f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 0.1\\n',
    f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: kit\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
}
files[f'{info}/RECORD'] = ''.join(f'{f},,\\n' for f in files) + f'{info}/RECORD,,\\n'
with zipfile.ZipFile(path, 'w') as z:
    for f, text in files.items():
        z.writestr(f, text)
";

/// Makes `<name>-0.1-py3-none-any.whl` in `dir`, with one module of that name whose `VALUE` is
/// `value`; its path.
///
/// # Panics
///
/// When there is no `python3` on the `PATH`.
pub fn wheel(dir: &Path, name: &str, value: &str) -> PathBuf {
    let path = dir.join(format!("{name}-0.1-py3-none-any.whl"));
    let status = Command::new("python3")
        .args(["-I", "-c", SCRIPT])
        .arg(&path)
        .args([name, value])
        .status()
        .expect("python3 is on the PATH");
    assert!(status.success(), "the wheel is made");
    path
}
