//! What a project consumes, and how far its budgets are used up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::budget::{Amounts, BudgetLimits, Periods};
use toolgate_engine::price::{Price, Prices};
use toolgate_testkit::project_settings::project_settings_with;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::OPERATOR;

use crate::world::World;

/// The day on which the clock of the tests starts.
const TODAY: &str = "2027-01-15";
const DAY_MILLIS: i64 = 24 * 3600 * 1000;
/// Cost of a step: ten tokens read, five written.
const STEP_COST: f64 = 0.000_035;

async fn world(budgets: BudgetLimits) -> World {
    World::with_engine(|settings| {
        settings.projects = project_settings_with(|project| {
            let price = Price::per_million(2.0, 3.0, None).unwrap();
            project.prices = Arc::new(Prices {
                currency: "EUR".into(),
                models: BTreeMap::from([("demo".to_owned(), price)]),
            });
            project.budgets = budgets;
        });
    })
    .await
}

fn of_day(day: Amounts) -> Periods {
    Periods {
        day,
        ..Periods::default()
    }
}

fn runs(max: u64) -> Amounts {
    Amounts {
        runs: Some(max),
        ..Amounts::default()
    }
}

async fn usage(client: &Client<'_>, query: &str) -> Value {
    client.get(&format!("/v1/usage?{query}")).await.expect(200)
}

/// Keys and runs of all rows.
fn rows(report: &Value) -> Vec<(Option<&str>, u64)> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["key"].as_str(), row["runs"].as_u64().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_backend_sees_what_its_project_consumes_by_day_agent_user_and_model() {
    let world = world(BudgetLimits::default()).await;
    let backend = world.backend();
    backend.run("hello").await;
    world.user("ada").run("hello").await;
    world.clock.jump(DAY_MILLIS);
    world.user("ada").run("hello").await;
    let by_day = usage(&backend, "").await;
    assert_eq!(rows(&by_day), [(Some(TODAY), 2), (Some("2027-01-16"), 1)]);
    assert_eq!(
        (&by_day["from"], &by_day["currency"]),
        (&json!("2027-01-01"), &json!("EUR"))
    );
    let total = json!({
        "runs": 3, "requests": 3, "inputTokens": 30, "outputTokens": 15, "cachedTokens": 0,
        "cost": 0.000_105, "unpricedRequests": 0,
    });
    assert_eq!(by_day["total"], total);
    let by_user = usage(&backend, "by=user").await;
    let users = by_user["rows"].as_array().unwrap();
    assert_eq!((&users[0]["key"], &users[0]["runs"]), (&Value::Null, &json!(1)));
    assert_eq!(
        (&users[1]["subject"], &users[1]["runs"]),
        (&json!("ada"), &json!(2))
    );
    assert_eq!(rows(&usage(&backend, "by=agent").await), [(Some("default"), 3)]);
    assert_eq!(rows(&usage(&backend, "by=model").await), [(Some("demo:demo"), 3)]);
    let one_day = usage(&backend, &format!("from={TODAY}&to={TODAY}&by=agent")).await;
    assert_eq!(rows(&one_day), [(Some("default"), 2)]);
    assert_eq!(rows(&usage(&backend, "from=2027-02-01&to=2027-02-02").await), []);
}

#[tokio::test]
async fn pages_add_up_to_the_whole() {
    let world = world(BudgetLimits::default()).await;
    world.backend().run("hello").await;
    for subject in ["ada", "bob", "eve"] {
        world.user(subject).run("hello").await;
    }
    let backend = world.backend();
    let whole = usage(&backend, "by=user").await;
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = usage(&backend, &format!("by=user&limit=1{after}")).await;
        assert_eq!(page["total"], whole["total"]);
        pages.extend(page["rows"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(cursor) => after = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(Value::from(pages), whole["rows"]);
}

#[tokio::test]
async fn a_query_that_makes_no_sense_is_refused() {
    let world = world(BudgetLimits::default()).await;
    for query in [
        "from=yesterday",
        "from=2027-01-02&to=2027-01-01",
        "from=2025-01-01&to=2027-01-01",
        "by=hour",
        "by=user&after=ada",
        "limit=0",
        "until=2027-01-01",
    ] {
        let told = world.backend().get(&format!("/v1/usage?{query}")).await;
        assert_eq!(told.status, 400, "{query}: {}", told.body);
    }
}

#[tokio::test]
async fn only_backends_and_the_operator_see_what_a_project_consumes() {
    let world = world(BudgetLimits::default()).await;
    world.user("ada").run("hello").await;
    world.user("ada").get("/v1/usage").await.expect(403);
    world.backend().get("/v1/projects/test/usage").await.expect(403);
    let operator = world
        .nobody()
        .with("authorization", &format!("Bearer {OPERATOR}"));
    operator.get("/v1/projects/nobody/usage").await.expect(404);
    let projects = operator.get("/v1/projects").await.expect(200);
    let names = projects["projects"].as_array().unwrap().iter();
    let mut runs = Vec::new();
    for name in names.map(|project| project["name"].as_str().unwrap()) {
        let report = operator
            .get(&format!("/v1/projects/{name}/usage"))
            .await
            .expect(200);
        runs.push(report["total"]["runs"].as_u64().unwrap());
    }
    runs.sort_unstable();
    assert_eq!(runs, [0, 1]);
}

#[tokio::test]
async fn a_budget_that_is_used_up_says_which_how_far_and_until_when() {
    let world = world(BudgetLimits {
        user: of_day(runs(1)),
        ..BudgetLimits::default()
    })
    .await;
    let ada = world.user("ada");
    ada.run("hello").await;
    let refused = ada.post("/v1/runs", json!({ "text": "hello" })).await;
    // The clock of the tests starts at eight in the morning.
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((57_000..=57_601).contains(&seconds), "{seconds}");
    let told = refused.expect(429);
    assert_eq!(told["code"], "BUDGET_EXCEEDED");
    let budget = json!({
        "setting": "budgets.user.day.runs", "used": 1.0, "max": 1.0,
        "resetsAt": "2027-01-16T00:00:00.000Z",
    });
    assert_eq!(told["budget"], budget);
    world.user("bob").run("hello").await;
    world.backend().run("hello").await;
    world.clock.jump(seconds as i64 * 1000);
    ada.run("hello").await;
}

#[tokio::test]
async fn a_user_learns_nothing_of_what_others_consume() {
    let world = world(BudgetLimits {
        project: of_day(runs(1)),
        ..BudgetLimits::default()
    })
    .await;
    world.backend().run("hello").await;
    let body = json!({ "text": "hello" });
    let told = world.user("ada").post("/v1/runs", body.clone()).await.expect(429);
    let budget = json!({ "setting": "budgets.project.day.runs", "resetsAt": "2027-01-16T00:00:00.000Z" });
    assert_eq!(told["budget"], budget);
    assert!(!told["detail"].as_str().unwrap().contains("runs of"), "{told}");
    let told = world.backend().post("/v1/runs", body).await.expect(429);
    assert_eq!(
        (&told["budget"]["used"], &told["budget"]["max"]),
        (&json!(1.0), &json!(1.0))
    );
    let own = world.user("ada").get("/v1/budgets").await.expect(200);
    let scopes = own["budgets"].as_array().unwrap().iter();
    assert!(scopes.clone().all(|budget| budget["scope"] == "user"), "{own}");
    assert_eq!(scopes.count(), 2);
    world
        .user("ada")
        .get("/v1/budgets?agent=default")
        .await
        .expect(403);
}

#[tokio::test]
async fn budgets_tell_what_is_used_and_what_is_left() {
    let world = world(BudgetLimits {
        user: of_day(Amounts {
            tokens: Some(1000),
            cost_micros: Some(2_500_000),
            ..Amounts::default()
        }),
        agent: of_day(runs(7)),
        ..BudgetLimits::default()
    })
    .await;
    let ada = world.user("ada");
    ada.run("hello").await;
    let own = ada.get("/v1/budgets").await.expect(200);
    let day = &own["budgets"][0];
    assert_eq!(day["used"], json!({ "tokens": 15, "runs": 1, "cost": STEP_COST }));
    assert_eq!(day["max"], json!({ "tokens": 1000, "runs": null, "cost": 2.5 }));
    let month = &own["budgets"][1];
    // Its cost in a month is not limited: it is not told.
    assert_eq!(month["used"], json!({ "tokens": 15, "runs": 1, "cost": null }));
    assert_eq!(month["resetsAt"], "2027-02-01T00:00:00.000Z");
    let all = world.backend().get("/v1/budgets?agent=default").await.expect(200);
    let scopes = all["budgets"].as_array().unwrap().iter();
    let scopes: Vec<_> = scopes.map(|budget| budget["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["project", "project", "agent", "agent"]);
    assert_eq!(all["budgets"][2]["max"]["runs"], 7);
    assert_eq!(all["budgets"][0]["used"]["cost"], STEP_COST);
}

#[tokio::test]
async fn a_project_does_not_change_its_own_budgets() {
    let world = World::new().await;
    let budgets = json!({ "budgets": { "user": { "day": { "runs": 1 } } } });
    let told = world.backend().put("/v1/settings", budgets).await.expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/budgets");
}
