//! What the command line takes.

pub(crate) mod audit;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Keeps the Workspaces of agent engines: creates, suspends, recovers and reclaims them.
#[derive(Debug, Parser)]
#[command(
    name = "warren",
    version,
    max_term_width = 100,
    propagate_version = true
)]
#[command(after_help = "Example:\n  warren workspace init shop\n  \
    warren rootdir create shop --type git --creator agent-1 --repo https://git.example/shop.git\n  \
    warren workspace suspend shop --dry-run\n\n\
    Exit codes and error codes: docs/cli.md")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Where RootDirs live [env: WARREN_WORKSPACE_ROOT]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace_root: Option<PathBuf>,
    /// Where the host keeps its own state [env: WARREN_STATE_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Configuration file [env: WARREN_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What each plugin may reach [env: WARREN_POLICY]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// What stdout gets; logs go to stderr
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) output: Format,
    /// Print nothing but results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log more; twice: even more [env: WARREN_LOG, a filter like `info,warren::plugin=debug`]
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What stdout gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON document, for programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The Workspace of a Project
    #[command(subcommand)]
    Workspace(Workspace),
    /// The RootDirs of a Workspace
    #[command(subcommand)]
    Rootdir(RootDir),
    /// Temp files and directories; they go with their creator
    #[command(subcommand)]
    Temp(Temp),
    /// The working directory of a creator
    #[command(subcommand)]
    Workdir(Workdir),
    /// Python environments
    #[command(subcommand)]
    Python(Python),
    /// The handlers of this host
    #[command(subcommand)]
    Plugin(Plugin),
    /// What the handlers did and were refused
    #[command(subcommand)]
    Audit(audit::Audit),
    /// What each plugin may reach
    #[command(subcommand)]
    Policy(Policy),
    /// How full the workspace disk is
    #[command(after_help = "Example:\n  warren quota --output json")]
    Quota,
    /// What this machine can enforce of the policy, found out by doing it
    #[command(
        after_help = "Example:\n  warren doctor\n  warren doctor --output json\n\n\
        Exits with 9 when something that the policy needs is missing."
    )]
    Doctor,
    /// The settings
    #[command(subcommand)]
    Config(Config),
    /// Show the whole life of a Workspace on a real repository, then clean up
    #[command(after_help = "Example:\n  warren demo\n  \
        warren demo --repo https://git.example/you/scratch.git --keep")]
    Demo(Demo),
    /// Print a completion script
    #[command(
        after_help = "Example:\n  warren completions bash > ~/.local/share/bash-completion/completions/warren"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Which Project.
#[derive(Debug, Args)]
pub(crate) struct Project {
    /// Id of the Project
    pub(crate) project: String,
    /// Tenant that owns it
    #[arg(long, default_value = warren_model::DEFAULT_TENANT)]
    pub(crate) tenant: String,
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// At most so many entries
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    pub(crate) limit: u16,
    /// Start behind this entry; a page names the `next` one
    #[arg(long, value_name = "NAME")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workspace {
    /// Make the Workspace, or bring it back when it was suspended or interrupted
    #[command(after_help = "Example:\n  warren workspace init shop")]
    Init {
        #[command(flatten)]
        project: Project,
        /// Start here although the Workspace is in another workspace root, which is gone for good
        #[arg(long)]
        take_over: bool,
    },
    /// Show one Workspace
    #[command(after_help = "Example:\n  warren workspace get shop --output json")]
    Get(Project),
    /// List the Workspaces of a tenant
    #[command(after_help = "Example:\n  warren workspace list --limit 20 --after shop")]
    List {
        /// Which tenant
        #[arg(long, default_value = warren_model::DEFAULT_TENANT)]
        tenant: String,
        #[command(flatten)]
        page: Page,
    },
    /// Save every RootDir and take the folder off the disk; all or nothing
    #[command(after_help = "Example:\n  warren workspace suspend shop --dry-run")]
    Suspend {
        #[command(flatten)]
        project: Project,
        /// Change nothing; name what would be kept and what would be lost
        #[arg(long)]
        dry_run: bool,
    },
    /// Bring back what suspend saved; RootDirs that fail keep their Snapshot
    #[command(after_help = "Example:\n  warren workspace recover shop")]
    Recover(Project),
    /// Accept the Descriptors as they stand, after you have looked at what somebody else wrote
    ///
    /// The host refuses a Descriptor or workspace.json without its own seal. This names those that
    /// lack it and seals them.
    #[command(after_help = "Example:\n  warren workspace reseal shop")]
    Reseal(Project),
    /// Delete the Workspace with all its content, for good
    #[command(after_help = "Example:\n  warren workspace dispose shop --dry-run")]
    Dispose {
        #[command(flatten)]
        project: Project,
        #[command(flatten)]
        how: Disposal,
    },
}

/// How to delete.
#[derive(Debug, Args)]
pub(crate) struct Disposal {
    /// Change nothing; name what would be kept and what would be lost
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete even what its handler fails to close
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RootDir {
    /// Make a RootDir
    #[command(
        after_help = "Example:\n  warren rootdir create shop --type git --creator agent-1 \
        --repo https://git.example/shop.git --branch main\n  \
        warren rootdir create shop --type python --creator agent-1 --meta pythonPath=/usr/bin/python3\n\n\
        --meta KEY=TEXT is a text, --meta KEY:=JSON any JSON value: --meta commitOnClose:=true"
    )]
    Create(Box<Create>),
    /// List the RootDirs
    #[command(after_help = "Example:\n  warren rootdir list shop")]
    List {
        #[command(flatten)]
        project: Project,
        #[command(flatten)]
        page: Page,
    },
    /// Show one RootDir
    #[command(after_help = "Example:\n  warren rootdir get shop frontend --output json")]
    Get {
        #[command(flatten)]
        project: Project,
        /// Name of the RootDir
        #[arg(value_name = "DIRNAME")]
        dir_name: String,
    },
    /// Delete a RootDir, or all that go when a creator closes
    #[command(
        after_help = "Example:\n  warren rootdir dispose shop frontend --dry-run\n  \
        warren rootdir dispose shop --creator agent-1"
    )]
    #[command(group = clap::ArgGroup::new("which").required(true).args(["dir_name", "creator"]))]
    Dispose {
        #[command(flatten)]
        project: Project,
        /// Name of the RootDir
        #[arg(value_name = "DIRNAME")]
        dir_name: Option<String>,
        /// Creator that closes
        #[arg(long, value_name = "ID")]
        creator: Option<String>,
        #[command(flatten)]
        how: Disposal,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Type of the handler; `warren plugin list` shows them
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) handler_type: String,
    /// Process that asks
    #[arg(long, value_name = "ID")]
    pub(crate) creator: String,
    /// Hint for the name
    #[arg(long, value_name = "HINT", allow_hyphen_values = true)]
    pub(crate) label: Option<String>,
    /// Engine of the creator
    #[arg(long)]
    pub(crate) engine: Option<String>,
    /// Session of the creator
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Delete it when the creator closes
    #[arg(long)]
    pub(crate) delete_on_close: bool,
    /// Repository, as metadata `repoUrl`
    #[arg(long, value_name = "URL")]
    pub(crate) repo: Option<String>,
    /// Branch, as metadata `branch`
    #[arg(long)]
    pub(crate) branch: Option<String>,
    /// Credential of the configuration, as metadata `credentialAlias`
    #[arg(long, value_name = "ALIAS")]
    pub(crate) credential: Option<String>,
    /// Metadata for the handler: KEY=TEXT or KEY:=JSON
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Temp {
    /// Make a fresh empty file
    #[command(
        after_help = "Example:\n  warren temp file shop --creator agent-1 --prefix report- --suffix .csv"
    )]
    File(TempArgs),
    /// Make a fresh empty directory
    #[command(after_help = "Example:\n  warren temp dir shop --creator agent-1 --prefix build-")]
    Dir(TempArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TempArgs {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Process that asks
    #[arg(long, value_name = "ID")]
    pub(crate) creator: String,
    /// Start of the name
    #[arg(long)]
    pub(crate) prefix: String,
    /// End of the name
    #[arg(long, default_value = "")]
    pub(crate) suffix: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workdir {
    /// Make a RootDir the working directory
    #[command(after_help = "Example:\n  warren workdir set shop --creator agent-1 frontend")]
    Set {
        #[command(flatten)]
        who: Who,
        /// Name of the RootDir
        #[arg(value_name = "DIRNAME")]
        dir_name: String,
    },
    /// Show the working directory
    #[command(after_help = "Example:\n  warren workdir get shop --creator agent-1")]
    Get(Who),
    /// Leave the creator without one
    #[command(after_help = "Example:\n  warren workdir clear shop --creator agent-1")]
    Clear(Who),
}

/// Whose working directory.
#[derive(Debug, Args)]
pub(crate) struct Who {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Which creator
    #[arg(long, value_name = "ID")]
    pub(crate) creator: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Python {
    /// Make the environment of a RootDir anew
    #[command(
        after_help = "Example:\n  warren python rebuild shop analysis --python /usr/bin/python3.12"
    )]
    Rebuild {
        #[command(flatten)]
        project: Project,
        /// Name of the RootDir
        #[arg(value_name = "DIRNAME")]
        dir_name: String,
        /// Interpreter to change to
        #[arg(long, value_name = "PATH")]
        python: Option<String>,
    },
}

/// What a report is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// People at a terminal
    #[default]
    Text,
    /// Programs
    Json,
    /// Tools that collect findings
    Sarif,
    /// People with a browser: one page that needs nothing else
    Html,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// List the handlers, and what did not load
    #[command(after_help = "Example:\n  warren plugin list")]
    List,
    /// Show what a component imports, wants and gets, and whether it would load
    #[command(after_help = "Example:\n  warren plugin inspect git\n  \
        warren plugin inspect ./mine.wasm")]
    Inspect {
        /// A type of this host, or a file: with a `/` or a `.` in it, it is a file
        #[arg(value_name = "TYPE|FILE")]
        subject: String,
    },
    /// Check a component and copy it into the plugin directory; it loads once it is approved
    #[command(after_help = "Example:\n  warren plugin add ./notes.wasm")]
    Add {
        /// The component
        file: PathBuf,
    },
    /// Delete a component from the plugin directory, and its approval
    #[command(after_help = "Example:\n  warren plugin remove notes")]
    Remove {
        /// Its type
        #[arg(value_name = "TYPE")]
        handler: String,
        /// Although Workspaces have RootDirs of the type
        #[arg(long)]
        force: bool,
    },
    /// Show how two components differ: imports, wishes, what each would get
    #[command(after_help = "Example:\n  warren plugin diff notes ./notes-2.wasm")]
    Diff {
        /// A type of this host, or a file
        #[arg(value_name = "OLD")]
        old: String,
        /// A type of this host, or a file
        #[arg(value_name = "NEW")]
        new: String,
    },
    /// Let a component load with what the policy gives it now; shows what is new and asks
    #[command(after_help = "Example:\n  warren plugin approve notes\n  \
        warren plugin approve notes --yes --by alice")]
    Approve {
        /// Its type
        #[arg(value_name = "TYPE")]
        handler: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Who approves; the user by default
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
    },
    /// Show what every plugin asks for, was granted and by whom, has used, and was refused
    #[command(after_help = "Example:\n  warren plugin report\n  \
        warren plugin report --format html --out plugins.html\n  \
        warren plugin report --format sarif --since 7d")]
    Report {
        /// As what
        #[arg(long, value_enum, default_value_t)]
        format: ReportFormat,
        /// Where to; stdout by default
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        when: audit::Period,
    },
    /// Propose the least policy that covers what a plugin was seen to use
    #[command(after_help = "Example:\n  warren plugin suggest git --since 30d")]
    Suggest {
        /// Its type
        #[arg(value_name = "TYPE")]
        handler: String,
        #[command(flatten)]
        when: audit::Period,
    },
    /// Keep the plugin of a type from loading, shipped or not
    #[command(after_help = "Example:\n  warren plugin revoke notes")]
    Revoke {
        /// Its type
        #[arg(value_name = "TYPE")]
        handler: String,
        /// Who revokes; the user by default
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
    },
    /// Put a manifest into a component that has none
    #[command(
        after_help = "Example:\n  warren plugin stamp notes.wasm --manifest manifest.toml --out notes-1.wasm"
    )]
    Stamp {
        /// The component
        file: PathBuf,
        /// The manifest, TOML
        #[arg(long, value_name = "FILE")]
        manifest: PathBuf,
        /// Where the component with the manifest goes
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Print the policy in force: the operator's over the shipped one
    #[command(after_help = "Example:\n  warren policy show")]
    Show,
    /// Print the JSON schema of a policy
    #[command(after_help = "Example:\n  warren policy schema > policy.schema.json")]
    Schema,
    /// Check a policy file
    #[command(after_help = "Example:\n  warren policy check ./policy.toml")]
    Check {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every setting; secrets are not settings, only where they come from is
    #[command(after_help = "Example:\n  warren config show --origin")]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Repository to work with; needs push access. Without it one is made
    #[arg(long, value_name = "URL")]
    pub(crate) repo: Option<String>,
    /// Credential of the configuration for the repository
    #[arg(long, value_name = "ALIAS", requires = "repo")]
    pub(crate) credential: Option<String>,
    /// Leave everything in place afterwards
    #[arg(long)]
    pub(crate) keep: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    fn commands(command: &clap::Command, path: &str, found: &mut Vec<(String, bool)>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            if sub.has_subcommands() {
                commands(sub, &path, found);
                continue;
            }
            let help = sub
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            found.push((path.clone(), help.contains(&path)));
        }
    }

    #[test]
    fn every_command_has_an_example() {
        Cli::command().debug_assert();
        let mut found = Vec::new();
        commands(&Cli::command(), "warren", &mut found);
        assert!(found.len() >= 20);
        for (path, has_example) in found {
            assert!(has_example, "`{path}` has no example");
        }
    }
}
