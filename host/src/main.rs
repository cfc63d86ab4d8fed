//! The program `warren`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
