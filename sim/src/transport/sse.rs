//! Server-sent events, as Streamable HTTP uses them.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty means `message`.
    pub kind: String,
    /// Its data, lines joined by a line end.
    pub data: String,
    /// The id in force after it.
    pub id: Option<String>,
}

/// Splits a byte stream into events. Bounded: what is longer than the limit is dropped with its event.
#[derive(Debug)]
pub struct Events {
    pending: Vec<u8>,
    event: Event,
    has_data: bool,
    last_id: Option<String>,
    retry_ms: Option<u64>,
    limit: usize,
}

impl Events {
    /// A reader of events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            pending: Vec::new(),
            event: Event::default(),
            has_data: false,
            last_id: None,
            retry_ms: None,
            limit,
        }
    }

    /// The last event id that was seen.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The time before reconnecting that the server asked for.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes more bytes and gives the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.pending.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(at) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=at).collect();
            let line = String::from_utf8_lossy(&line);
            events.extend(self.line(line.trim_end_matches(['\n', '\r'])));
        }
        if self.pending.len() > self.limit {
            self.pending.clear();
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then(|| Event { id: self.last_id.clone(), ..event });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                if self.event.data.len() + value.len() <= self.limit {
                    self.event.data.push_str(value);
                }
            }
            "event" => value.clone_into(&mut self.event.kind),
            "id" => self.last_id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_across_chunks() {
        let mut events = Events::new(1000);
        assert!(events.push(b": comment\nid: 7\nretry: 50\nda").is_empty());
        let got = events.push(b"ta: a\ndata: b\r\n\nevent: x\ndata:c\n\n");
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].data.as_str(), got[0].id.as_deref()), ("a\nb", Some("7")));
        assert_eq!((got[1].kind.as_str(), got[1].data.as_str()), ("x", "c"));
        assert_eq!(events.retry_ms(), Some(50));
    }
}
