//! The findings as SARIF 2.1.0.

use serde_json::{Value, json};

use super::{RULES, Report};

/// The report for tools that collect findings.
pub fn sarif(report: &Report) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.summary },
                "help": { "text": rule.help },
                "defaultConfiguration": { "level": rule.level.as_str() },
            })
        })
        .collect();
    let results: Vec<Value> = report
        .plugins
        .iter()
        .flat_map(|plugin| {
            plugin.findings.iter().map(move |finding| {
                let index = RULES.iter().position(|rule| rule.id == finding.rule);
                json!({
                    "ruleId": finding.rule,
                    "ruleIndex": index,
                    "level": finding.level.as_str(),
                    "message": { "text": finding.message },
                    "locations": [{ "logicalLocations": [{
                        "name": plugin.handler,
                        "fullyQualifiedName": format!("plugin/{}", plugin.handler),
                        "kind": "module",
                    }] }],
                    "properties": {
                        "origin": plugin.origin,
                        "digest": plugin.digest,
                        "grantId": plugin.grant_id,
                    },
                })
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "warren",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}
