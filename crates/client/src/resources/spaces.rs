//! Spaces.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::time::Time;

use super::runs::{Posted, RunRequest};
use crate::client::Client;
use crate::error::Error;
use crate::event::Event;
use crate::http::Patience;
use crate::stream::EventStream;

/// A space to be made.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NewSpace {
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent that answers when a message names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whatever the project attaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Who takes part: entity ids, or subjects. For backends only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// A shared conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    /// Which.
    pub id: SpaceId,
    /// Its name for people.
    #[serde(default)]
    pub title: Option<String>,
    /// The agent that answers when a message names none.
    #[serde(default)]
    pub agent: Option<String>,
    /// Whatever the project attached.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// Who takes part.
    pub members: Vec<EntityId>,
    /// When it was made.
    pub created_at: Time,
}

/// A page of stored events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// What to give as `after` for the next page; none on the last.
    pub next_cursor: Option<Seq>,
}

/// Makes, reads and follows spaces.
#[derive(Debug, Clone, Copy)]
pub struct Spaces<'a> {
    pub(crate) client: &'a Client,
}

impl Spaces<'_> {
    /// Makes one.
    pub async fn create(&self, space: &NewSpace) -> Result<Space, Error> {
        let http = self.client.http();
        http.send(Method::POST, "v1/spaces", space, Patience::Once).await
    }

    /// One of them.
    pub async fn get(&self, space: SpaceId) -> Result<Space, Error> {
        self.client.http().get(&format!("v1/spaces/{space}"), &[]).await
    }

    /// The newest of them.
    pub async fn list(&self) -> Result<Vec<Space>, Error> {
        #[derive(Deserialize)]
        struct List {
            spaces: Vec<Space>,
        }
        let list: List = self.client.http().get("v1/spaces", &[]).await?;
        Ok(list.spaces)
    }

    /// Says something in a space.
    pub async fn post(&self, space: SpaceId, request: RunRequest) -> Result<Posted, Error> {
        let request = RunRequest {
            space: None,
            ..request
        };
        let path = format!("v1/spaces/{space}/messages");
        let http = self.client.http();
        http.send(Method::POST, &path, &request, Patience::Brief).await
    }

    /// Its events after a place, without end.
    pub fn subscribe(&self, space: SpaceId, after: Seq) -> EventStream {
        EventStream::of_space(self.client.http().clone(), space, after)
    }

    /// A page of its stored events after a place.
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

/// As many as the gateway gives at once.
const EVENTS_PAGE: usize = 500;
