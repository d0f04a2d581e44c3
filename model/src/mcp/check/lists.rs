//! Lists: pages, cursors, changes, completeness.

use super::{Judge, Party};
use crate::finding::Severity;
use crate::mcp::negotiation::client::ListKind;
use serde_json::Value;

/// One list as far as the exchange shows it.
#[derive(Debug, Default)]
struct List {
    /// Cursors that the server gave.
    given: Vec<String>,
    /// The cursor that has to be asked for next, and where it was given.
    due: Option<(String, usize)>,
    /// Where a change was announced that the client has not followed.
    stale: Option<usize>,
    /// The change was followed by a request.
    refreshing: bool,
    seen: bool,
    /// A page that comes after the first.
    continuing: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lists {
    tools: List,
    prompts: List,
    resources: List,
}

impl Lists {
    fn get(&mut self, kind: ListKind) -> &mut List {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
        }
    }
}

fn of_method(method: &str) -> Option<ListKind> {
    ListKind::ALL.into_iter().find(|kind| kind.method() == method)
}

impl Judge {
    pub(super) fn requested_cursor(&mut self, method: &str, params: Option<&Value>) {
        let Some(kind) = of_method(method) else { return };
        let cursor =
            params.and_then(|params| params.get("cursor")).and_then(Value::as_str).map(str::to_owned);
        let list = self.lists.get(kind);
        match cursor {
            None => {
                list.refreshing = list.stale.take().is_some();
                list.given.clear();
                list.due = None;
                list.continuing = false;
            }
            Some(cursor) if list.due.as_ref().is_some_and(|(due, _)| *due == cursor) => {
                list.due = None;
                list.continuing = true;
            }
            Some(cursor) if list.given.contains(&cursor) => self.report(
                "cursor-asked-twice",
                Severity::Error,
                Party::Client,
                "utilities, pagination",
                format!("asked for cursor \"{cursor}\" again"),
                "a server that repeats its cursor would be paged for ever (I-STOP)",
            ),
            Some(cursor) if list.seen => self.report(
                "cursor-never-given",
                Severity::Error,
                Party::Client,
                "utilities, pagination: cursors are opaque and come from the server",
                format!("asked for cursor \"{cursor}\", which the server never gave"),
                "the server has to refuse it with -32602",
            ),
            Some(_) => list.continuing = true,
        }
    }

    pub(super) fn list_result(&mut self, kind: ListKind, result: &Value) {
        let items = match result.get(kind.word()) {
            Some(Value::Array(items)) => items.clone(),
            Some(_) => {
                self.report(
                    "list-not-an-array",
                    Severity::Error,
                    Party::Server,
                    "server features, lists",
                    format!("`{}` is not an array", kind.word()),
                    "the client cannot read the list",
                );
                return;
            }
            None => {
                if !self.abridged {
                    self.report(
                        "list-missing",
                        Severity::Error,
                        Party::Server,
                        "server features, lists",
                        format!("a `{}` result without `{}`", kind.method(), kind.word()),
                        "the member is required",
                    );
                }
                return;
            }
        };
        if kind == ListKind::Tools {
            self.tools_page(&items);
        }
        self.next_cursor(kind, result.get("nextCursor"));
        let list = self.lists.get(kind);
        list.seen = true;
        let complete = list.due.is_none();
        let refreshed = complete && std::mem::take(&mut list.refreshing);
        if kind == ListKind::Tools {
            self.tools_complete = complete;
            if refreshed {
                let names = self.tool_order.join(", ");
                self.report(
                    "list-refreshed",
                    Severity::Note,
                    Party::Client,
                    "server features, tools, list changed (I-LIST)",
                    format!(
                        "asks again after the change: the next model request offers {}: {names}",
                        self.tool_order.len()
                    ),
                    "the list is current again",
                );
            }
        }
    }

    fn next_cursor(&mut self, kind: ListKind, cursor: Option<&Value>) {
        let cursor = match cursor {
            None | Some(Value::Null) => return,
            Some(Value::String(cursor)) => cursor.clone(),
            Some(other) => {
                self.report(
                    "cursor-not-a-string",
                    Severity::Error,
                    Party::Server,
                    "utilities, pagination: a cursor is an opaque string",
                    format!("`nextCursor` is {other}"),
                    "the client cannot send it back",
                );
                return;
            }
        };
        let entry = self.entry;
        let list = self.lists.get(kind);
        if list.given.contains(&cursor) {
            self.report(
                "cursor-repeated",
                Severity::Error,
                Party::Server,
                "utilities, pagination",
                format!("cursor does not advance: \"{cursor}\" was given before"),
                "a faithful client pages for ever and its list grows (I-STOP)",
            );
            self.report(
                "paging-must-stop",
                Severity::Note,
                Party::Client,
                "utilities, pagination",
                "must stop after a repeated cursor and must not list a tool twice",
                "lists and retries end (I-STOP)",
            );
        } else {
            list.given.push(cursor.clone());
            list.due = Some((cursor, entry));
        }
    }

    fn tools_page(&mut self, items: &[Value]) {
        if !self.lists.tools.continuing {
            self.tools.clear();
            self.tool_order.clear();
        }
        let repeated_page = self.lists.tools.continuing;
        for (number, item) in items.iter().enumerate() {
            // An abridged list may give names only.
            let name = item.as_str().or(item.get("name").and_then(Value::as_str));
            let Some(name) = name else {
                if !self.abridged || item.is_object() {
                    self.report(
                        "tool-without-name",
                        Severity::Error,
                        Party::Server,
                        "server features, tools, definition",
                        format!("tool {number} of the page has no name"),
                        "it cannot be called",
                    );
                }
                continue;
            };
            if self.tools.contains_key(name) {
                let how = if repeated_page { "on two pages" } else { "twice" };
                self.report(
                    "tool-listed-twice",
                    Severity::Error,
                    Party::Server,
                    "server features, tools: names are unique (I-LIST)",
                    format!("tool `{name}` is listed {how}"),
                    "one name, one definition",
                );
                continue;
            }
            self.tool_order.push(name.to_owned());
            self.tools.insert(name.to_owned(), item.clone());
            if item.is_object() && !self.abridged {
                self.definition(name, item);
            }
        }
    }

    /// The protocol's own rules on a definition; `mcp lint` has those of the model APIs besides.
    fn definition(&mut self, name: &str, item: &Value) {
        let schema = item.get("inputSchema");
        let object = schema.and_then(Value::as_object);
        if object.and_then(|schema| schema.get("type")).and_then(Value::as_str) != Some("object") {
            self.report(
                "input-schema-invalid",
                Severity::Error,
                Party::Server,
                "server features, tools, definition: inputSchema is a JSON Schema of type object, never null",
                format!("the `inputSchema` of tool `{name}` is not of type object"),
                "one bad definition can cost the client the whole list",
            );
        }
    }

    pub(super) fn list_change(&mut self, kind: ListKind) {
        let flag =
            self.capabilities.as_ref().map(|all| all.get(kind.word()).and_then(|c| c.get("listChanged")));
        if let Some(declared) = flag
            && declared != Some(&Value::Bool(true))
        {
            self.report(
                "list-change-not-declared",
                Severity::Error,
                Party::Server,
                "lifecycle, capabilities: listChanged must be declared",
                format!("`{}` although `{}.listChanged` is not declared", kind.change(), kind.word()),
                "clients ignore it",
            );
            return;
        }
        let entry = self.entry;
        self.lists.get(kind).stale = Some(entry);
    }

    pub(super) fn end_lists(&mut self) {
        for kind in ListKind::ALL {
            let list = self.lists.get(kind);
            let (due, stale) = (list.due.take(), list.stale.take());
            if let Some((cursor, entry)) = due
                && !self.waiting().any(|open| open.method == kind.method())
            {
                self.report_at(
                    entry,
                    "pages-not-followed",
                    Severity::Error,
                    Party::Client,
                    "utilities, pagination: a missing cursor ends the list (I-LIST)",
                    format!("must ask for cursor \"{cursor}\" until no cursor comes"),
                    "what stands on later pages is lost",
                );
            }
            if let Some(entry) = stale {
                self.report_at(
                    entry,
                    "list-change-ignored",
                    Severity::Error,
                    Party::Client,
                    "server features, list changed (I-LIST)",
                    format!("does not ask for `{}` again after the change", kind.method()),
                    "new tools stay unknown, removed ones stay on offer",
                );
            }
        }
    }
}
