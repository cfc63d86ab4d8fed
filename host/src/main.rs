//! The program `warren`.

mod cli;

fn main() -> std::process::ExitCode {
    // Not a command for people: the host starts itself so, and hands the component in.
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|word| word == warren::plugin::COMPILE_WORKER)
    {
        return warren::plugin::compile_worker(args);
    }
    cli::main()
}
