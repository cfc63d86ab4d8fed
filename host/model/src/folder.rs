//! How ids become folder names: injectively, and readable where the id is.

use crate::{ProjectId, TenantId};

/// Folder of a Project under the workspace root.
///
/// Letters, digits, `_`, `-` and `.` stay (the last two not in front); every other byte becomes
/// `%XX`. `%` itself is escaped, so no two ids share a folder.
pub fn project_folder(id: &ProjectId) -> String {
    escape(id.as_str())
}

/// Folder of a tenant under the workspace root, where tenants have one; escaped likewise.
pub fn tenant_folder(id: &TenantId) -> String {
    escape(id.as_str())
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || byte == b'_';
        let inner = (byte == b'-' || byte == b'.') && i > 0;
        if plain || inner {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_ids_stay_and_others_are_escaped() {
        for (id, folder) in [
            ("acme-1.2_x", "acme-1.2_x"),
            ("..%2fP2", "%2E.%252fP2"),
            ("-rf", "%2Drf"),
            (".x", "%2Ex"),
            ("a b", "a%20b"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(project_folder(&id.parse().unwrap()), folder);
        }
    }

    proptest! {
        #[test]
        fn folders_are_injective_and_one_component(a in "\\PC{1,20}", b in "\\PC{1,20}") {
            if let (Ok(x), Ok(y)) = (a.parse::<ProjectId>(), b.parse::<ProjectId>()) {
                let (fx, fy) = (project_folder(&x), project_folder(&y));
                prop_assert_eq!(x == y, fx == fy);
                prop_assert!(!fx.contains('/') && !fx.starts_with('.') && fx.len() <= 240);
            }
        }
    }
}
