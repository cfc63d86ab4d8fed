//! `warren audit …`

use clap::{Args, Subcommand, ValueEnum};
use warren_audit::{Outcome, Pin};

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the last records
    #[command(after_help = "Example:\n  warren audit tail -n 20\n  \
        warren audit tail --follow --project shop")]
    Tail {
        /// How many
        #[arg(short = 'n', long = "lines", default_value_t = 20, value_name = "N")]
        lines: usize,
        /// Go on with those that are written from now on, until stopped
        #[arg(long, short)]
        follow: bool,
        #[command(flatten)]
        which: Which,
    },
    /// Show the records that match, oldest first, a page at a time
    #[command(after_help = "Example:\n  \
        warren audit search --handler git --outcome denied --since yesterday\n  \
        warren audit search --text git.example --since 2026-01-31 --until 2026-02-01T12:00:00Z")]
    Search {
        #[command(flatten)]
        which: Which,
        /// At most so many records
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
        limit: u16,
        /// Start behind this record; a page names the `next` one
        #[arg(long, default_value_t = 0, value_name = "SEQ")]
        after: u64,
    },
    /// Check that no record was changed, taken out, put in or moved; needs only the state directory
    #[command(after_help = "Example:\n  warren audit verify\n  \
        warren audit verify --pin 4711:0f3c…\n\n\
        Keep the pin that it prints elsewhere: with it, records cut off at the end show, too.")]
    Verify {
        /// A record that must be there: its number, `:` and its hash
        #[arg(long, value_name = "SEQ:HASH")]
        pin: Option<Pin>,
    },
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Of this tenant
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Of this Project
    #[arg(long, value_name = "ID")]
    pub(crate) project: Option<String>,
    /// Of this RootDir
    #[arg(long, value_name = "DIRNAME")]
    pub(crate) dir_name: Option<String>,
    /// Of handlers of this type
    #[arg(long, value_name = "TYPE")]
    pub(crate) handler: Option<String>,
    /// Of the component whose digest starts so
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plugin: Option<String>,
    /// Of this call
    #[arg(long, value_name = "CALL")]
    pub(crate) call: Option<String>,
    /// Of this capability: `git`, `process`, `network`, `files`, `call`, `plugin`, `audit`
    #[arg(long, value_name = "NAME")]
    pub(crate) capability: Option<String>,
    /// That ended so
    #[arg(long, value_enum)]
    pub(crate) outcome: Option<Ended>,
    #[command(flatten)]
    pub(crate) when: Period,
    /// With this text in verb, target, code or detail, in any case
    #[arg(long)]
    pub(crate) text: Option<String>,
}

/// From when to when.
#[derive(Debug, Args)]
pub(crate) struct Period {
    /// Written at this time or later: `2026-01-31`, `2026-01-31T12:00:00Z`, `today`, `yesterday`, or
    /// so long ago: `90m`, `12h`, `7d`. Days are of UTC
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Written before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// How a use ended.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Ended {
    /// It was about to happen
    Started,
    /// It worked
    Ok,
    /// It was refused
    Denied,
    /// It was allowed and failed
    Failed,
}

impl From<Ended> for Outcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Started => Self::Started,
            Ended::Ok => Self::Ok,
            Ended::Denied => Self::Denied,
            Ended::Failed => Self::Failed,
        }
    }
}
