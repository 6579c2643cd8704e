//! Spaces.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::{EntityId, SpaceId};
use toolgate_protocol::time::Time;

use super::runs::{Posted, RunRequest};
use crate::client::Client;
use crate::error::Error;
use crate::event::Event;
use crate::http::RetryPolicy;
use crate::stream::EventStream;

/// A space to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NewSpace {
    /// Title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent that answers messages that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Metadata of the project's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Members: entity ids or subjects. Needs a secret key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// A shared conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    /// The space's id.
    pub id: SpaceId,
    /// Title for people.
    #[serde(default)]
    pub title: Option<String>,
    /// The agent that answers messages that name none.
    #[serde(default)]
    pub agent: Option<String>,
    /// Metadata of the project's own.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// Members of the space.
    pub members: Vec<EntityId>,
    /// When it was created.
    pub created_at: Time,
}

/// A page of stored events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The value of `after` for the next page; `None` on the last.
    pub next_cursor: Option<Seq>,
}

/// Creates, reads and follows spaces.
#[derive(Debug, Clone, Copy)]
pub struct Spaces<'a> {
    pub(crate) client: &'a Client,
}

impl Spaces<'_> {
    /// Creates a space.
    pub async fn create(&self, space: &NewSpace) -> Result<Space, Error> {
        let http = self.client.http();
        http.send(Method::POST, "v1/spaces", space, RetryPolicy::Once)
            .await
    }

    /// A space by its id.
    pub async fn get(&self, space: SpaceId) -> Result<Space, Error> {
        self.client.http().get(&format!("v1/spaces/{space}"), &[]).await
    }

    /// The newest spaces.
    pub async fn list(&self) -> Result<Vec<Space>, Error> {
        #[derive(Deserialize)]
        struct List {
            spaces: Vec<Space>,
        }
        let list: List = self.client.http().get("v1/spaces", &[]).await?;
        Ok(list.spaces)
    }

    /// Posts a message to a space.
    pub async fn post(&self, space: SpaceId, request: RunRequest) -> Result<Posted, Error> {
        let request = RunRequest {
            space: None,
            ..request
        };
        let path = format!("v1/spaces/{space}/messages");
        let http = self.client.http();
        http.send(Method::POST, &path, &request, RetryPolicy::Brief).await
    }

    /// The space's events after a cursor, without end.
    pub fn subscribe(&self, space: SpaceId, after: Seq) -> EventStream {
        EventStream::of_space(self.client.http().clone(), space, after)
    }

    /// A page of the space's stored events after a cursor.
    pub async fn events(&self, space: SpaceId, after: Seq) -> Result<EventPage, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            events: Vec<Box<RawValue>>,
            next_cursor: Option<Seq>,
        }
        let query = [("after", after.0.to_string()), ("limit", EVENTS_PAGE.to_string())];
        let path = format!("v1/spaces/{space}/events");
        let page: Page = self.client.http().get(&path, &query).await?;
        let events: Result<Vec<Event>, _> = page.events.iter().map(|raw| Event::read(raw.get())).collect();
        Ok(EventPage {
            events: events.map_err(|error| Error::Protocol(error.to_string()))?,
            next_cursor: page.next_cursor,
        })
    }
}

/// The gateway's largest page.
const EVENTS_PAGE: usize = 500;
