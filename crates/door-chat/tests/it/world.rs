//! This door with an engine behind it.

use std::sync::LazyLock;

use toolgate_door_chat::{api, router};
use toolgate_http::describe::document;
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::World;

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&document([api()])));

pub async fn world() -> World {
    World::new(&CONTRACT, |_| (), |ground| router(ground.shared.clone())).await
}
