//! What a model is told of whoever sends a message.

use toolgate_kernel::context::is_time_zone;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Sender};

use crate::Inner;
use crate::store::{EntityRecord, SpaceRecord};

/// Longest name of a person that a model is told.
const NAME_CHARS_MAX: usize = 64;

impl Inner {
    /// What is known of the sender of a message: a name where several people may speak, and a time zone, the person's
    /// own or else that of the space.
    pub(crate) async fn sender(&self, message: &Message, space: Option<&SpaceRecord>) -> Option<Sender> {
        let person = message.person();
        let entity = match person {
            // A name and a time zone only help the model: without them the message is as good.
            Some(person) => self.store.entity(person).await.ok().flatten(),
            None => None,
        };
        let known = message.sender.clone().unwrap_or_default();
        let own = entity
            .as_ref()
            .and_then(|entity| zone_in(entity.metadata.as_ref()));
        let of_space = || zone_in(space?.metadata.as_ref());
        let several = message.from.is_some() && space.is_some_and(|space| space.members.len() > 1);
        let sender = Sender {
            name: entity.filter(|_| several).map(|entity| plain_name(&entity)),
            time_zone: known.time_zone.or(own).or_else(of_space),
            executor: known.executor,
        };
        (sender != Sender::default()).then_some(sender)
    }
}

/// The time zone that metadata names.
fn zone_in(metadata: Option<&Json>) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Zoned {
        #[serde(rename = "timeZone")]
        time_zone: String,
    }
    // Metadata is the project's own: anything else under this name is no time zone.
    let zoned: Zoned = metadata?.read().ok()?;
    is_time_zone(&zoned.time_zone).then_some(zoned.time_zone)
}

/// A person's name as the beginning of a line: without line breaks, and not too long.
fn plain_name(entity: &EntityRecord) -> String {
    let name = entity.name.as_deref().unwrap_or(&entity.subject);
    let name = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    name.take(NAME_CHARS_MAX).collect()
}
