//! The robots exclusion protocol: `robots.txt` as in RFC 9309.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolgate_egress::{BodyLimit, Client, EgressError};
use toolgate_kernel::time::Time;
use url::Url;

/// Product token that sites address us by.
const AGENT: &str = "toolgate";
/// Most bytes of a file; number of cached sites, and how long they are cached.
const FILE_BYTES_MAX: usize = 512 << 10;
const SITES_MAX: usize = 256;
/// Most rules of a site.
const RULES_MAX: usize = 2_000;
const KEPT: Duration = Duration::from_secs(3600);

/// Cache of the rules of sites.
#[derive(Default)]
pub(super) struct Robots {
    sites: Mutex<HashMap<String, (Arc<Rules>, Time)>>,
}

impl Robots {
    /// Whether the site allows this page. If its `robots.txt` cannot be read nothing is allowed.
    pub(super) async fn allow(&self, client: &Client, page: &Url, now: Time) -> Result<bool, EgressError> {
        let site = page.origin().ascii_serialization();
        let rules = match self.known(&site, now) {
            Some(rules) => rules,
            None => {
                let rules = Arc::new(ask(client, page).await?);
                self.remember(site, rules.clone(), now);
                rules
            }
        };
        let query = page.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(rules.allow(&format!("{}{query}", page.path())))
    }

    fn known(&self, site: &str, now: Time) -> Option<Arc<Rules>> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let (rules, until) = sites.get(site)?;
        (*until > now).then(|| rules.clone())
    }

    fn remember(&self, site: String, rules: Arc<Rules>, now: Time) {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= SITES_MAX {
            sites.clear();
        }
        sites.insert(site, (rules, now.after(KEPT)));
    }
}

async fn ask(client: &Client, page: &Url) -> Result<Rules, EgressError> {
    let url = page.join("/robots.txt").expect("a path of a site");
    let answer = client
        .send(super::request(url, BodyLimit::Cut(FILE_BYTES_MAX)))
        .await?;
    Ok(match answer.status.as_u16() {
        200..=299 => Rules::read(&String::from_utf8_lossy(&answer.body)),
        // Without a file everything is allowed.
        300..=499 => Rules::default(),
        _ => Rules::read("user-agent: *\ndisallow: /"),
    })
}

/// Rules of one site: patterns, and whether they allow.
#[derive(Debug, Default)]
struct Rules(Vec<(String, bool)>);

impl Rules {
    /// Parses the groups for our product token, or else those for `*`.
    fn read(file: &str) -> Self {
        let (mut ours, mut everybodys) = (None, Vec::new());
        // User agents of the group, and whether its list of them is still open.
        let (mut to_us, mut to_everybody, mut open) = (false, false, false);
        for line in file.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !open {
                        (to_us, to_everybody) = (false, false);
                    }
                    open = true;
                    to_everybody |= value == "*";
                    if is_ours(value) {
                        to_us = true;
                        ours.get_or_insert_with(Vec::new);
                    }
                }
                "allow" | "disallow" => {
                    open = false;
                    if value.is_empty() {
                        continue;
                    }
                    let rule = || (value.to_owned(), key == "allow");
                    if to_us {
                        ours.get_or_insert_with(Vec::new).push(rule());
                    }
                    if to_everybody {
                        everybodys.push(rule());
                    }
                }
                _ => {}
            }
        }
        let mut rules = ours.unwrap_or(everybodys);
        rules.truncate(RULES_MAX);
        Self(rules)
    }

    /// The longest matching pattern decides; of two as long `allow` does.
    fn allow(&self, target: &str) -> bool {
        let fitting = self.0.iter().filter(|(pattern, _)| fits(pattern, target));
        fitting
            .max_by_key(|(pattern, allowed)| (pattern.len(), *allowed))
            .is_none_or(|(_, allowed)| *allowed)
    }
}

fn is_ours(name: &str) -> bool {
    name.split('/')
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case(AGENT))
}

/// `*` matches anything, `$` anchors the end; otherwise a prefix is enough. Each piece matches at its earliest position,
/// so that no pattern costs more than the length of the address.
fn fits(pattern: &str, target: &str) -> bool {
    let (pattern, ends) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| target.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !ends || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if ends && pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pattern_that_fits_decides() {
        let rules = Rules::read(
            "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.pdf$\nDisallow: /x*y*z # note\n",
        );
        for (target, expected) in [
            ("/", true),
            ("/a", false),
            ("/ab", false),
            ("/a/b/c", true),
            ("/doc.pdf", false),
            ("/doc.pdf?x", true),
            ("/x1y2z3", false),
            ("/x1z2y", true),
        ] {
            assert_eq!(rules.allow(target), expected, "{target}");
        }
    }

    #[test]
    fn a_group_that_names_us_replaces_the_one_for_everybody() {
        let rules = Rules::read(
            "user-agent: *\ndisallow: /\n\nuser-agent: other\nuser-agent: Toolgate/1\ndisallow: /private\n",
        );
        assert!(rules.allow("/page") && !rules.allow("/private/x"));
        assert!(Rules::read("user-agent: toolgate\ndisallow:\n\nuser-agent: *\ndisallow: /").allow("/page"));
        assert!(Rules::read("<html>no rules</html>").allow("/page"));
    }
}
