//! WebFetch: the host of an address, domain rules and hosts that need no rule.
//!
//! Source: gate-and-hooks, section 7.4.

/// Hosts that run without a rule; only what was seen is listed, so another documentation host asks.
const PREAPPROVED: [&str; 1] = ["docs.python.org"];

/// The host of an absolute `http` or `https` address: without port and user, lower case, no final dot.
pub fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host_port = authority.rsplit('@').next()?;
    let host = if host_port.starts_with('[') {
        host_port.split(']').next().map(|h| format!("{h}]"))?
    } else {
        host_port.split(':').next()?.to_owned()
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some(host)
}

/// Whether an address runs without a rule.
pub fn is_preapproved(host: &str) -> bool {
    PREAPPROVED.contains(&host)
}

/// Whether a domain pattern covers a host: `*.h` subdomains of any depth but not `h`; `h.*` one label; `*` all.
pub fn domain_matches(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim_end_matches('.').to_ascii_lowercase();
    if pattern == "*" || pattern == host {
        return true;
    }
    if let Some(parent) = pattern.strip_prefix("*.") {
        return !parent.contains('*')
            && host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
    }
    if let Some(stem) = pattern.strip_suffix(".*") {
        return !stem.contains('*')
            && host
                .strip_prefix(stem)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|label| !label.is_empty() && !label.contains('.'));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_the_table() {
        for url in [
            "http://example.com/x",
            "https://EXAMPLE.com./x",
            "http://example.com:8080/",
            "http://u@example.com/",
        ] {
            assert_eq!(host(url).as_deref(), Some("example.com"), "{url}");
        }
        assert_eq!(host("not a url"), None);
        assert!(
            domain_matches("*.example.com", "a.b.example.com")
                && !domain_matches("*.example.com", "example.com")
        );
        assert!(
            domain_matches("example.*", "example.org")
                && !domain_matches("example.*", "example.com.evil.net")
        );
        assert!(
            domain_matches("EXAMPLE.COM", "example.com") && !domain_matches("example.com", "notexample.com")
        );
    }
}
