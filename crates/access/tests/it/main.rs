//! Who is asking, told by what they show.

use std::sync::Arc;

use toolgate_access::{
    Access, AccessError, AccessSettings, Auth, ClaimNames, Credentials, Identity, Rate, Rates, SessionLimits,
    keys,
};
use toolgate_egress::Egress;
use toolgate_engine::revocation::Revocations;
use toolgate_engine::store::{Directory, KeyKind, ProjectRecord};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::held_clock::HeldClock;
use uuid::Uuid;

const SECRET: &str = "sk_0123456789abcdef";
const PUBLIC: &str = "pk_0123456789abcdef";
const OPERATOR: &str = "operator-of-the-tests";
const BURST: u32 = 3;

fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(1))
}

/// Access to a store with one project, whose keys are above.
async fn access(operator_key: Option<&str>) -> Access {
    let store = Arc::new(MemoryStore::new());
    let record = ProjectRecord {
        id: project(),
        name: "test".into(),
        jwt_secret: None,
        identity_provider: None,
        settings: None,
        created: Time(0),
    };
    store.put_project(record).await.unwrap();
    for (key, kind) in [(SECRET, KeyKind::Secret), (PUBLIC, KeyKind::Public)] {
        let record = keys::record(key, project(), kind, Time(0)).unwrap();
        store.put_key(record).await.unwrap();
    }
    let settings = AccessSettings {
        auth: Auth::Keys,
        rate: Rates {
            secret: Rate {
                per_second: 1,
                burst: BURST,
            },
            public: Rate {
                per_second: 1,
                burst: 1,
            },
        },
        claims: ClaimNames::default(),
        operator_key: operator_key.map(Secret::new),
        egress: Egress::new(),
        records: store.clone(),
        sessions: SessionLimits::default(),
    };
    let clock = Arc::new(HeldClock::new());
    Access::new(store.clone(), store, clock, Revocations::default(), settings)
}

fn key(key: &str) -> Credentials {
    Credentials::Key(key.into())
}

#[tokio::test]
async fn a_key_that_stands_alone_is_the_operators_or_a_backends() {
    let access = access(Some(OPERATOR)).await;
    assert_eq!(access.identify(key(OPERATOR)).await.unwrap(), Identity::Operator);
    let backend = access.principal(key(SECRET)).await.unwrap();
    assert_eq!((backend.project, backend.user), (project(), None));
    for wrong in [
        "a.b.c",
        PUBLIC,
        "operator-of-the-test",
        "operator-of-the-testz",
        "",
    ] {
        let refused = access.identify(key(wrong)).await.unwrap_err();
        assert!(
            refused.to_string().contains("no secret key"),
            "{wrong:?}: {refused}"
        );
    }
    let unknown = access.identify(key("sk_unknown0123456")).await.unwrap_err();
    assert!(matches!(unknown, AccessError::Unauthenticated(words) if words == "the key is not known"));
}

#[tokio::test]
async fn the_operator_opens_no_project_and_a_project_manages_none() {
    let access = access(Some(OPERATOR)).await;
    access.operator(key(OPERATOR)).await.unwrap();
    let refused = access.principal(key(OPERATOR)).await;
    assert!(
        matches!(refused, Err(AccessError::Unauthenticated(_))),
        "{refused:?}"
    );
    let refused = access.operator(key(SECRET)).await;
    assert!(matches!(refused, Err(AccessError::Forbidden(_))), "{refused:?}");
}

#[tokio::test]
async fn without_an_operators_key_nobody_is_the_operator() {
    let access = access(None).await;
    for any in ["", OPERATOR, PUBLIC] {
        let refused = access.operator(key(any)).await;
        assert!(
            matches!(refused, Err(AccessError::Unauthenticated(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn the_operator_is_counted_apart_from_projects() {
    let access = access(Some(OPERATOR)).await;
    for _ in 0..BURST {
        access.identify(key(OPERATOR)).await.unwrap();
    }
    let refused = access.identify(key(OPERATOR)).await;
    assert!(matches!(refused, Err(AccessError::RateLimited(1))), "{refused:?}");
    access.identify(key(SECRET)).await.unwrap();
}
