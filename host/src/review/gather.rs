//! What the runtime knows of a component, as the report needs it.

use std::collections::BTreeMap;

use warren_policy::Verdict;

use super::{Approved, Refusal, Subject};
use crate::plugin::{Examination, LoadError, LoadFailure, Origin, Runtime};

/// Who has approved what is shipped, as long as nobody else has.
const SHIPPED: &str = "this version of Warren";

/// Every component of a host, loaded or not. `words` says what the policy's own words stand for.
pub fn gather(
    runtime: &Runtime,
    failures: &[LoadFailure],
    words: &BTreeMap<String, Vec<String>>,
) -> Vec<Subject> {
    let all = runtime.found().into_iter().map(|(origin, bytes)| {
        let name = origin.to_string();
        let examined = bytes.and_then(|bytes| runtime.examine(origin.clone(), &bytes));
        let mut subject = match examined {
            Ok(found) => examined_subject(found),
            Err(error) => Subject {
                handler: origin.name(),
                refused: Some(refusal(&error)),
                ..Subject::default()
            },
        };
        // What only showed when it was compiled and asked.
        let failure = failures.iter().find(|failure| failure.origin == origin);
        if let (None, Some(failure)) = (&subject.refused, failure) {
            subject.refused = Some(refusal(&failure.error));
        }
        Subject {
            origin: name,
            words: words.clone(),
            ..subject
        }
    });
    all.collect()
}

fn examined_subject(found: Examination) -> Subject {
    let changes = found.changes();
    let is_shipped = matches!(found.origin, Origin::Shipped(_));
    let origin_name = found.origin.name();
    let Examination {
        inspection,
        review,
        problem,
        ..
    } = found;
    let manifest = inspection.manifest.ok();
    let is_approved = review
        .as_ref()
        .is_some_and(|review| review.verdict == Verdict::Approved);
    let approval = review.as_ref().and_then(|review| review.approval.as_ref());
    let approval = match approval {
        Some(approval) => Some(Approved {
            by: approval.approved_by.clone(),
            at: Some(approval.approved_at),
            digest: Some(approval.digest.clone()),
        }),
        None => (is_shipped && is_approved).then(|| Approved {
            by: SHIPPED.to_owned(),
            at: None,
            digest: Some(inspection.digest.clone()),
        }),
    };
    Subject {
        handler: manifest
            .as_ref()
            .map_or(origin_name, |manifest| manifest.handler_type.to_string()),
        name: manifest.as_ref().map(|manifest| manifest.name.clone()),
        version: manifest.as_ref().map(|manifest| manifest.version.clone()),
        digest: Some(inspection.digest),
        imports: inspection.imports,
        wants: manifest.map(|manifest| manifest.wants),
        grant_id: review.as_ref().map(|review| review.id.to_string()),
        grant: review.map(|review| review.grant),
        refused: problem.as_ref().map(refusal),
        // Against nothing, everything is a change, and says nothing.
        changes: approval
            .as_ref()
            .filter(|by| by.at.is_some())
            .map_or_else(Vec::new, |_| changes),
        approval,
        ..Subject::default()
    }
}

fn refusal(error: &LoadError) -> Refusal {
    Refusal {
        code: error.code().to_owned(),
        message: crate::error::chain(error),
        hint: error.hint(),
    }
}
