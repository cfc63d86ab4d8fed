//! Programs, with their failures as errors of the contract.

use warren_sdk::process::{self, Command, Output};
use warren_sdk::{Error, ProcessError};

/// Most lines of a program's output in an error.
const TAIL_LINES_MAX: usize = 15;

/// Most bytes of a program's output in an error.
const TAIL_BYTES_MAX: usize = 2000;

/// Runs a program, whatever its exit code.
pub(crate) fn any(command: &Command) -> Result<Output, Error> {
    process::run(command).map_err(|error| match error {
        ProcessError::NotFound(name) => Error::MissingProgram(name),
        error => Error::Process(error),
    })
}

/// Runs a program that must succeed. `what` names it for the reader.
pub(crate) fn checked(what: &str, command: &Command) -> Result<Output, Error> {
    let output = any(command)?;
    if output.exit_code == 0 {
        return Ok(output);
    }
    Err(Error::ProgramFailed(failure(what, &output)))
}

/// What a program that failed said, with its exit code.
pub(crate) fn failure(what: &str, output: &Output) -> String {
    let code = output.exit_code;
    format!("`{what}` exited with {code}: {}", tail(output))
}

/// The last lines that say something: of standard error, or of standard output when that is empty.
fn tail(output: &Output) -> String {
    let text = [&output.stderr, &output.stdout]
        .into_iter()
        .map(|text| text.trim())
        .find(|text| !text.is_empty())
        .unwrap_or("no output");
    let lines: Vec<_> = text.lines().collect();
    let text = lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n");
    let start = text.len().saturating_sub(TAIL_BYTES_MAX);
    let start = (start..).find(|&at| text.is_char_boundary(at));
    text[start.unwrap_or_default()..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stdout: &str, stderr: &str) -> Output {
        Output {
            exit_code: 1,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            truncated: false,
        }
    }

    #[test]
    fn the_tail_is_short_and_never_cut_inside_a_character() {
        assert_eq!(tail(&output("out", " \n")), "out");
        assert_eq!(tail(&output("out", "err\n")), "err");
        assert_eq!(tail(&output("", "")), "no output");
        let many = (0..100).map(|n| format!("{n}\n")).collect::<String>();
        let short = tail(&output("", &many));
        assert!(
            short.starts_with("85\n") && short.ends_with("99"),
            "{short}"
        );
        let wide = format!("x{}", "é".repeat(3000));
        let short = tail(&output("", &wide));
        assert!(short.len() <= TAIL_BYTES_MAX && short.chars().all(|c| c == 'é'));
    }
}
