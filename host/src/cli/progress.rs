//! Progress bars of clone, push and pip.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use warren::service::ProgressSink;

use super::console::{Console, safe};

/// A sink that draws one bar a RootDir and stage; none where nobody looks.
pub(crate) fn sink(console: &Console) -> Option<ProgressSink> {
    if !console.live || console.is_json() {
        return None;
    }
    let multi = console.bars.clone();
    let bars: Mutex<HashMap<String, (String, ProgressBar)>> = Mutex::new(HashMap::new());
    Some(Arc::new(move |progress| {
        let mut bars = bars.lock().unwrap_or_else(PoisonError::into_inner);
        let dir_name = progress.dir_name.to_string();
        let known = bars
            .get(&dir_name)
            .filter(|(stage, _)| *stage == progress.stage);
        let bar = match known {
            Some((_, bar)) => bar.clone(),
            None => {
                let bar = multi.add(ProgressBar::no_length().with_style(style(false)));
                bar.set_prefix(format!("{} {}", safe(&dir_name), safe(&progress.stage)));
                bar.enable_steady_tick(Duration::from_millis(120));
                let last = bars.insert(dir_name, (progress.stage.clone(), bar.clone()));
                if let Some((_, last)) = last {
                    last.finish_and_clear();
                }
                bar
            }
        };
        if let Some(total) = progress.total.filter(|_| bar.length() != progress.total) {
            bar.set_style(style(true));
            bar.set_length(total);
        }
        bar.set_position(progress.done);
        if progress.total.is_some_and(|total| progress.done >= total) {
            bar.finish_and_clear();
        }
    }))
}

fn style(has_total: bool) -> ProgressStyle {
    let template = match has_total {
        true => "{prefix:30!} {bar:30} {pos}/{len}",
        false => "{prefix:30!} {spinner} {pos}",
    };
    // A template that does not parse would only cost the looks.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
