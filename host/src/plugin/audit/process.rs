//! Uses of `process`. Arguments and values of variables may hold secrets: of arguments there is a
//! count and a digest, of variables the names.

use sha2::{Digest, Sha256};
use warren_process::ProcessError as Failure;

use super::{End, Open, Program, Start, Target, Unrecorded, Use};
use crate::plugin::bindings::warren::handler::process as wit;

/// Name of the capability.
const PROCESS: &str = "process";

/// Names of variables in one record.
const NAMES_MAX: usize = 32;

/// Longest such name.
const NAME_BYTES_MAX: usize = 64;

/// Counts runs that this machine was not made to confine.
pub(crate) const UNCONFINED: &str = "unconfined";

/// What starts the list of variables in a record.
pub(crate) const VARIABLES: &str = " env=";

/// Looking for a program.
pub(crate) fn find(program: &wit::Program) -> Use {
    Use::new(PROCESS, "find", Start::Unrecorded).on(target(program))
}

/// Running one.
pub(crate) fn run(command: &wit::Command) -> Use {
    let mut what = Use::new(PROCESS, "run", Start::Recorded).on(target(&command.program));
    what.counts = vec![
        ("arguments", command.arguments.len() as u64),
        ("variables", command.environment.len() as u64),
    ];
    let mut detail = format!("argv={}", digest(&command.arguments));
    let names = command.environment.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = names
        .filter(|name| is_plain(name))
        .take(NAMES_MAX)
        .collect();
    if !names.is_empty() {
        detail.push_str(VARIABLES);
        detail.push_str(&names.join(","));
    }
    what.detail = Some(detail);
    what
}

fn target(program: &wit::Program) -> Target<'_> {
    Target::Program(match program {
        wit::Program::Alias(name) => Program::Alias(name.into()),
        wit::Program::Path(path) => Program::Path(path.into()),
        wit::Program::InRoot(path) => Program::InRoot(path.into()),
    })
}

/// Tells two commands apart, and says nothing about what is in them.
fn digest(arguments: &[String]) -> String {
    let mut hash = Sha256::new();
    for argument in arguments {
        hash.update((argument.len() as u64).to_le_bytes());
        hash.update(argument);
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain)
}

/// Records how looking for a program ended.
pub(crate) fn found<T>(open: Open, done: &Result<T, Failure>) -> Result<(), Unrecorded> {
    match done {
        Ok(_) => open.end(End::OK, &[]),
        Err(error) => open.end(failed(error), &[]),
    }
}

/// Records how a run ended. One that the program itself called a failure was a use that worked.
pub(crate) fn ran(open: Open, done: &Result<wit::Output, Failure>) -> Result<(), Unrecorded> {
    match done {
        Ok(output) => {
            let code = u64::try_from(output.exit_code).unwrap_or_default();
            open.end(End::OK, &[("exitCode", code)])
        }
        Err(error) => open.end(failed(error), &[]),
    }
}

fn failed(error: &Failure) -> End<'_> {
    End::failed(error.code(), matches!(error, Failure::Denied(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_arguments_nor_values_are_in_a_record() {
        let command = wit::Command {
            program: wit::Program::Alias("pip".into()),
            arguments: vec!["--token".into(), "s3cret".into()],
            environment: vec![
                ("PIP_INDEX_URL".into(), "https://u:s3cret@h".into()),
                ("BAD s3cret".into(), "x".into()),
            ],
            timeout_ms: None,
        };
        let what = run(&command);
        assert_eq!(what.target.as_deref(), Some("pip"));
        assert_eq!(what.counts, [("arguments", 2), ("variables", 2)]);
        let detail = what.detail.unwrap();
        assert!(detail.ends_with(" env=PIP_INDEX_URL"), "{detail}");
        assert!(!detail.contains("s3cret"), "{detail}");
    }

    #[test]
    fn other_arguments_have_another_digest() {
        let of = |arguments: &[&str]| {
            digest(
                &arguments
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
            )
        };
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
        assert_eq!(of(&["a"]), of(&["a"]));
    }
}
