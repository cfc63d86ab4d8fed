//! What goes to the terminal: results to stdout, everything else to stderr.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use indicatif::MultiProgress;
use serde::Serialize;
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use warren::error::chain;
use warren_disk::text::{escape, excerpt};

use super::args::{Format, Global};
use super::error::CliError;
use super::exit;

/// Most bytes of one message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

const RED: Style = AnsiColor::Red.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();

/// What a command answers.
pub(crate) struct Reply {
    value: Value,
    text: String,
    exit: u8,
}

impl Reply {
    /// An answer: `report` for programs, `text` for people.
    pub(crate) fn new(report: &impl Serialize, text: String) -> Result<Self, CliError> {
        Ok(Self {
            value: serde_json::to_value(report)?,
            text,
            exit: exit::OK,
        })
    }

    /// The same, with another exit code.
    pub(crate) fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }
}

/// The terminal, as the flags want it.
#[derive(Clone)]
pub(crate) struct Console {
    format: Format,
    /// Draws above the log lines; hidden where nobody looks.
    pub(crate) bars: MultiProgress,
    /// Whether people look at stderr.
    pub(crate) live: bool,
}

impl Console {
    pub(crate) fn new(global: &Global) -> Self {
        let live = io::stderr().is_terminal() && !global.quiet;
        Self {
            format: global.output,
            bars: MultiProgress::new(),
            live,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Sends log lines to stderr.
    pub(crate) fn start_logging(&self, global: &Global) {
        let level = match (global.quiet, global.verbose) {
            (true, _) => "error",
            (false, 0) => "warn",
            (false, 1) => "info",
            (false, 2) => "debug,cranelift_codegen=info,wasmtime=info",
            (false, _) => "trace",
        };
        let filter = std::env::var("WARREN_LOG")
            .ok()
            .filter(|text| !text.is_empty())
            .map_or_else(|| EnvFilter::new(level), EnvFilter::new);
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(io::stderr().is_terminal())
            .with_writer(LogWriter(self.bars.clone()))
            .without_time();
        // Only a second call can fail, and there is none.
        let _ = subscriber.try_init();
    }

    /// Prints something before the end of a command.
    pub(crate) fn stream(&self, text: &str) -> io::Result<()> {
        print(text)
    }

    /// Prints what a command came to, and returns the exit code.
    pub(crate) fn finish(&self, outcome: Result<Reply, CliError>) -> u8 {
        let (text, code) = match &outcome {
            Ok(reply) if self.is_json() => (document(&reply.value), reply.exit),
            Ok(reply) => (reply.text.clone(), reply.exit),
            Err(error) if self.is_json() => (document(&error_value(error)), error.exit()),
            Err(error) => {
                print_error(&chain(error), error.hint().as_deref());
                return error.exit();
            }
        };
        match print(&text) {
            Ok(()) => code,
            // Whoever read it has had enough; the work is done all the same.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
            Err(error) => {
                print_error(&format!("cannot write to stdout: {error}"), None);
                exit::INTERNAL
            }
        }
    }
}

/// Prints a command line that cannot be understood, or the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    let wants_json = std::env::args_os().any(|arg| arg == "--output=json")
        || std::env::args_os()
            .zip(std::env::args_os().skip(1))
            .any(|(flag, value)| flag == "--output" && value == "json");
    if error.use_stderr() && wants_json {
        let text = error.render().to_string();
        // Behind it stands how the command is used, for people.
        let message = text.split("\n\nUsage:").next().unwrap_or(&text);
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = excerpt(message.as_bytes(), MESSAGE_BYTES_MAX);
        let value = json!({ "error": {
            "code": "Usage", "message": message, "hint": "`warren --help` shows the commands",
        } });
        let _ = print(&document(&value));
    } else {
        // Nobody is left to tell when this fails.
        let _ = error.print();
    }
    if error.use_stderr() {
        exit::USAGE
    } else {
        exit::OK
    }
}

/// Text from outside on one line, with nothing that a terminal obeys.
pub(crate) fn safe(text: &str) -> String {
    escape(text.as_bytes())
}

fn error_value(error: &CliError) -> Value {
    json!({ "error": {
        "code": error.code(), "message": chain(error), "hint": error.hint(),
    } })
}

fn document(value: &Value) -> String {
    format!("{value:#}\n")
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn print_error(message: &str, hint: Option<&str>) {
    let mut text = String::new();
    let message = excerpt(message.as_bytes(), MESSAGE_BYTES_MAX);
    // Writing to a string can not fail.
    let _ = writeln!(text, "{RED}error:{RED:#} {message}");
    if let Some(hint) = hint {
        let hint = excerpt(hint.as_bytes(), MESSAGE_BYTES_MAX);
        let _ = writeln!(text, "{CYAN}hint:{CYAN:#} {hint}");
    }
    // Nobody is left to tell when this fails.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes log lines so that they do not tear the progress bars.
struct LogWriter(MultiProgress);

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine(self.0.clone())
    }
}

struct LogLine(MultiProgress);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().lock().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::{document, error_value, safe};
    use crate::cli::error::CliError;

    #[test]
    fn an_error_is_one_document_with_code_message_and_hint() {
        let error = CliError::Service(warren::Error::WorkspaceNotFound(
            "default/\u{1b}[2Jx".into(),
        ));
        let text = document(&error_value(&error));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["error"]["code"], "WorkspaceNotFound");
        assert!(
            value["error"]["hint"]
                .as_str()
                .unwrap()
                .contains("workspace init")
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_name() {
        assert_eq!(safe("a\u{1b}[31m\nb\u{202e}"), "a%1B[31m%0Ab%E2%80%AE");
    }
}
