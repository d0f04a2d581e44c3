//! The messages of opening a connection, and what their answers say.

use crate::mcp::jsonrpc::{ErrorObject, code};
use crate::mcp::profile::ClientProfile;
use crate::mcp::version::Version;
use serde_json::{Map, Value, json};

/// Prefix of the protocol's own `_meta` keys.
pub const META: &str = "io.modelcontextprotocol/";
/// `_meta` key of the revision of a modern request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities in a modern request.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name in a modern request.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of the server's name in a modern result.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of messages that belong to a `subscriptions/listen` request.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Who the client says it is and what it says it can.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientIdentity {
    /// `clientInfo`.
    pub info: Value,
    /// Its capabilities.
    pub capabilities: Value,
    /// The URIs that it names as roots.
    pub roots: Vec<String>,
    /// What it says when a server asks the user something.
    pub elicitation: Elicitation,
}

/// What a client without a person in front of it answers to `elicitation/create`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Elicitation {
    /// `{"action": "cancel"}`, as Claude Code in print mode (mcp.md 3.4).
    #[default]
    Cancel,
    /// Accepts, each property with the default of the requested schema, where it has one.
    AcceptDefaults,
}

impl ClientIdentity {
    /// A client with a name and a version, without capabilities.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            info: json!({"name": name, "version": version}),
            capabilities: json!({}),
            roots: Vec::new(),
            elicitation: Elicitation::Cancel,
        }
    }

    /// What Claude Code 2.1.332 declares (mcp.md 3.2).
    pub fn claude_code(workspace_uri: &str) -> Self {
        Self {
            info: json!({"name": "claude-code", "version": "2.1.332"}),
            capabilities: json!({"roots": {"listChanged": true}, "elicitation": {"form": {}, "url": {}}}),
            roots: vec![workspace_uri.to_owned()],
            elicitation: Elicitation::Cancel,
        }
    }

    /// Its answer to a request from the server, in whichever era it comes; `None`: not served.
    pub fn answer(&self, method: &str, params: Option<&Value>) -> Option<Value> {
        if !self.serves(method) {
            return None;
        }
        match method {
            "roots/list" => {
                let roots: Vec<Value> = self.roots.iter().map(|uri| json!({"uri": uri})).collect();
                Some(json!({"roots": roots}))
            }
            "elicitation/create" => Some(match self.elicitation {
                Elicitation::Cancel => json!({"action": "cancel"}),
                Elicitation::AcceptDefaults => {
                    json!({"action": "accept", "content": defaults(params)})
                }
            }),
            _ => None,
        }
    }

    /// Whether the capability of a request that asks the client for input is declared.
    pub fn serves(&self, method: &str) -> bool {
        let capability = match method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => return false,
        };
        self.capabilities.get(capability).is_some()
    }
}

/// The defaults that the requested schema of an elicitation gives its properties.
fn defaults(params: Option<&Value>) -> Map<String, Value> {
    params
        .and_then(|params| params.get("requestedSchema")?.get("properties")?.as_object())
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
        .collect()
}

/// `params` of `initialize` (mcp.md 1.4).
pub fn initialize_params(identity: &ClientIdentity, offered: Version) -> Value {
    json!({
        "protocolVersion": offered.to_value(),
        "capabilities": identity.capabilities,
        "clientInfo": identity.info,
    })
}

/// `params` with the metadata that every modern request carries (mcp.md 1.5); keys already in `_meta` stay.
pub fn with_metadata(params: Option<Value>, identity: &ClientIdentity, version: Version) -> Value {
    let mut params = match params {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let mut meta = match params.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    meta.insert(META_VERSION.to_owned(), version.to_value());
    meta.insert(META_CAPABILITIES.to_owned(), identity.capabilities.clone());
    meta.insert(META_CLIENT.to_owned(), identity.info.clone());
    params.insert("_meta".to_owned(), Value::Object(meta));
    Value::Object(params)
}

/// What the answer to `server/discover` says to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeAnswer {
    /// A discover result that lists this revision of the client's.
    Modern(Version),
    /// -32022 whose `supported` lists this revision of the client's: ask again with it.
    RetryWith(Version),
    /// A discover result, or -32022, without a modern revision in common.
    NoCommonModern {
        /// It was -32022.
        refused: bool,
        /// A legacy revision of the client's is named.
        legacy_named: bool,
        /// Some modern revision is named.
        modern_named: bool,
    },
    /// Any other answer: a server that does not know the method.
    NotModern,
}

/// The revisions that a list of JSON strings names; what is no date is left out.
pub fn versions(list: Option<&Value>) -> Vec<Version> {
    list.and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Version::from_value).collect())
        .unwrap_or_default()
}

/// Reads a result of `server/discover`.
pub fn read_discover(result: &Value, client: &ClientProfile) -> ProbeAnswer {
    if !result.get("supportedVersions").is_some_and(Value::is_array) {
        return ProbeAnswer::NotModern;
    }
    let supported = versions(result.get("supportedVersions"));
    match client.common_modern(&supported) {
        Some(version) => ProbeAnswer::Modern(version),
        None => no_common(false, &supported, client),
    }
}

/// Reads an error on `server/discover`, or on any other modern request.
pub fn read_modern_error(error: &ErrorObject, client: &ClientProfile) -> ProbeAnswer {
    if error.code != code::UNSUPPORTED_VERSION {
        return ProbeAnswer::NotModern;
    }
    let supported = versions(error.data.as_ref().and_then(|data| data.get("supported")));
    match client.common_modern(&supported) {
        Some(version) => ProbeAnswer::RetryWith(version),
        None => no_common(true, &supported, client),
    }
}

fn no_common(refused: bool, supported: &[Version], client: &ClientProfile) -> ProbeAnswer {
    ProbeAnswer::NoCommonModern {
        refused,
        legacy_named: client.has_common_legacy(supported),
        modern_named: supported.iter().any(|v| v.era() == crate::mcp::version::Era::Modern),
    }
}
