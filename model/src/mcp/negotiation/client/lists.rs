//! Lists: pages, failures, changes (mcp.md 1.8, 1.9, 3.5, 3.6).

use super::{Client, Deadline, Failure, Ignored, Output, Phase, Purpose};
use crate::mcp::jsonrpc::{ErrorObject, code};
use crate::mcp::negotiation::messages::{ProbeAnswer, read_modern_error};
use crate::mcp::version::Version;
use serde_json::{Value, json};

/// After so many pages a list ends: a server that invents cursors for ever costs bounded work.
pub const MOST_PAGES: usize = 1_000;

/// The lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
}

impl ListKind {
    /// All three, in the order in which they are asked for.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The capability, and the member of the result that holds the items.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    /// The method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
        }
    }

    /// The list whose change a notification announces.
    pub fn of_change(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.change() == method)
    }

    /// The notification that announces its change.
    pub fn change(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }

    /// The member by which two items of the list are the same.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
        }
    }
}

#[derive(Clone, Debug, Default)]
struct List {
    items: Vec<Value>,
    /// Pages of the reading under way.
    reading: Option<Vec<Value>>,
    cursors: Vec<String>,
    failures: usize,
    /// A change was announced while the list was being read.
    again: bool,
}

/// The three lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    tools: List,
    prompts: List,
    resources: List,
}

impl Lists {
    pub(super) fn items(&self, kind: ListKind) -> &[Value] {
        match kind {
            ListKind::Tools => &self.tools.items,
            ListKind::Prompts => &self.prompts.items,
            ListKind::Resources => &self.resources.items,
        }
    }

    fn get(&mut self, kind: ListKind) -> &mut List {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
        }
    }

    fn all_read(&self) -> bool {
        [&self.tools, &self.prompts, &self.resources].iter().all(|list| list.reading.is_none())
    }
}

impl Client {
    fn declares(&self, kind: ListKind) -> bool {
        // A client that never asked `server/discover` knows nothing: it asks for tools only.
        match &self.capabilities {
            Some(capabilities) => capabilities.get(kind.word()).is_some(),
            None => kind == ListKind::Tools,
        }
    }

    fn declares_change(&self, kind: ListKind) -> bool {
        let flag = self.capabilities.as_ref().and_then(|all| all.get(kind.word())?.get("listChanged"));
        flag == Some(&Value::Bool(true))
    }

    /// The filter of `subscriptions/listen`: what is declared to change; `None` when nothing is.
    pub(super) fn subscription_filter(&self) -> Option<Value> {
        let keys = [
            (ListKind::Tools, "toolsListChanged"),
            (ListKind::Prompts, "promptsListChanged"),
            (ListKind::Resources, "resourcesListChanged"),
        ];
        let filter: serde_json::Map<String, Value> = keys
            .into_iter()
            .filter(|(kind, _)| self.declares_change(*kind))
            .map(|(_, key)| (key.to_owned(), Value::Bool(true)))
            .collect();
        (!filter.is_empty()).then_some(Value::Object(filter))
    }

    pub(super) fn begin_lists(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Listing;
        if self.relist {
            for kind in ListKind::ALL {
                if self.declares(kind) {
                    self.read_list(kind, out);
                } else {
                    *self.lists.get(kind) = List::default();
                }
            }
        }
        self.finish_lists(out);
    }

    fn read_list(&mut self, kind: ListKind, out: &mut Vec<Output>) {
        let list = self.lists.get(kind);
        list.reading = Some(Vec::new());
        list.cursors.clear();
        list.again = false;
        self.request_page(kind, None, false, out);
    }

    fn request_page(&mut self, kind: ListKind, cursor: Option<String>, retried: bool, out: &mut Vec<Output>) {
        let id = self.fresh_id();
        let params = cursor.map(|cursor| json!({"cursor": cursor}));
        let version = self.agreed;
        self.send(id, kind.method(), params, version, Purpose::List { kind, retried }, out);
    }

    pub(super) fn list_answered(
        &mut self,
        kind: ListKind,
        retried: bool,
        answer: Result<Value, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        match answer {
            Ok(result) => match result.get(kind.word()).and_then(Value::as_array) {
                Some(items) => {
                    let cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                    self.page_read(kind, items, cursor, out);
                }
                None => self.list_failed(kind, true, out),
            },
            Err(error) => match read_modern_error(&error, &self.profile) {
                // Proposition 3.4.4: a refused request is sent once more, at a revision that both have.
                ProbeAnswer::RetryWith(version) if !retried && self.is_modern() => {
                    self.agree_again(version);
                    self.request_page(kind, None, true, out);
                }
                ProbeAnswer::RetryWith(_) | ProbeAnswer::NoCommonModern { .. } if self.is_modern() => {
                    self.fail(Failure::NoCommonVersion, out);
                }
                _ if self.capabilities.is_none() => self.fail(Failure::EraNotSpoken, out),
                _ => self.list_failed(kind, error.code != code::METHOD_NOT_FOUND, out),
            },
        }
    }

    fn page_read(&mut self, kind: ListKind, items: &[Value], cursor: Option<String>, out: &mut Vec<Output>) {
        let list = self.lists.get(kind);
        let read = list.reading.get_or_insert_default();
        for item in items {
            let same = |other: &Value| other.get(kind.key()) == item.get(kind.key());
            let repeated = item.get(kind.key()).is_some() && read.iter().any(same);
            // Within one page duplicates are the server's and are judged by name (first wins); a page that comes twice
            // must not list a tool twice (F54).
            if !repeated || list.cursors.is_empty() {
                read.push(item.clone());
            }
        }
        match cursor {
            None => {}
            Some(cursor) if list.cursors.contains(&cursor) => {
                out.push(Output::Ignored(Ignored::RepeatedCursor(kind)));
            }
            Some(_) if list.cursors.len() + 1 >= MOST_PAGES => {
                out.push(Output::Ignored(Ignored::TooManyPages(kind)));
            }
            Some(cursor) => {
                list.cursors.push(cursor.clone());
                self.request_page(kind, Some(cursor), false, out);
                return;
            }
        }
        let list = self.lists.get(kind);
        list.items = list.reading.take().unwrap_or_default();
        list.failures = 0;
        out.push(Output::Listed(kind));
        if std::mem::take(&mut list.again) {
            self.read_list(kind, out);
        }
        self.finish_lists(out);
    }

    /// A failed list is asked for again where the profile says so; then what was known is kept.
    fn list_failed(&mut self, kind: ListKind, may_retry: bool, out: &mut Vec<Output>) {
        let retries = self.profile.list_retries_ms.clone();
        let list = self.lists.get(kind);
        match retries.get(list.failures) {
            Some(after_ms) if may_retry => {
                list.failures += 1;
                out.push(Output::Wait { deadline: Deadline::Retry(kind), after_ms: *after_ms });
            }
            _ => {
                list.failures = 0;
                list.reading = None;
                out.push(Output::ListFailed(kind));
                self.finish_lists(out);
            }
        }
    }

    pub(super) fn retry_list(&mut self, kind: ListKind, out: &mut Vec<Output>) {
        self.read_list(kind, out);
    }

    fn finish_lists(&mut self, out: &mut Vec<Output>) {
        if self.phase == Phase::Listing && self.lists.all_read() {
            self.phase = Phase::Ready;
            out.push(Output::Stop(Deadline::Connect));
            out.push(Output::Ready);
            self.resume_parked(out);
        }
    }

    pub(super) fn list_changed(&mut self, kind: ListKind, out: &mut Vec<Output>) {
        if !self.declares_change(kind) {
            out.push(Output::Ignored(Ignored::UndeclaredChange(kind)));
        } else if self.lists.get(kind).reading.is_some() {
            self.lists.get(kind).again = true;
        } else if matches!(self.phase, Phase::Ready | Phase::Listing) {
            self.read_list(kind, out);
        }
    }

    pub(super) fn is_modern(&self) -> bool {
        self.agreed.is_some_and(|version| version.era() == crate::mcp::version::Era::Modern)
    }

    pub(super) fn agree_again(&mut self, version: Version) {
        self.agreed = Some(version);
    }
}
