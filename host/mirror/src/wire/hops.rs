//! Every HTTP request is held against the policy before it leaves: libgit2 follows a redirect to
//! another path of the same server, and takes credentials along.

use super::Wire;
use crate::MirrorError;
use crate::remote_url::{RemoteUrl, Scheme};

/// What git puts behind the path of a repository.
const SERVICES: [&str; 4] = [
    "/info/refs?service=git-upload-pack",
    "/info/refs?service=git-receive-pack",
    "/git-upload-pack",
    "/git-receive-pack",
];

/// Whether a URL may be asked now.
pub(crate) type Judge = Box<dyn Fn(&RemoteUrl) -> bool + Send>;

impl Wire {
    /// Whether these bytes may be sent; true for all that does not begin a request.
    pub(super) fn may_send(&self, bytes: &[u8]) -> bool {
        let permitted = &self.spec.permit.url;
        if !matches!(permitted.scheme, Scheme::Http | Scheme::Https) {
            return true;
        }
        let Some(target) = target(bytes) else {
            return true;
        };
        let path = SERVICES
            .iter()
            .find_map(|service| target.strip_suffix(service));
        let is_fine = path.is_some_and(|path| {
            path == permitted.path
                || permitted
                    .at(path)
                    .is_ok_and(|asked| (self.spec.judge)(&asked))
        });
        if !is_fine {
            let place = self.place();
            let error = format!("`{place}` redirects to a path that is not allowed");
            self.fail(MirrorError::Denied(error));
        }
        is_fine
    }
}

/// Path and query that the first line of a request names; none: these bytes begin none.
fn target(bytes: &[u8]) -> Option<&str> {
    let rest = bytes
        .strip_prefix(b"GET ")
        .or_else(|| bytes.strip_prefix(b"POST "))?;
    let end = rest.iter().position(|byte| *byte == b'\r')?;
    let line = std::str::from_utf8(&rest[..end]).ok()?;
    line.strip_suffix(" HTTP/1.1")
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn only_the_start_of_a_request_is_one() {
        let get = b"GET /a.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: h\r\n";
        let asked = "/a.git/info/refs?service=git-upload-pack";
        assert_eq!(target(get), Some(asked));
        assert_eq!(target(b"POST /a HTTP/1.1\r\n"), Some("/a"));
        for other in [
            &b"PACK"[..],
            b"",
            b"GET /a",
            b"0000",
            b"GET /a HTTP/1.0\r\n",
        ] {
            assert_eq!(target(other), None);
        }
    }
}
