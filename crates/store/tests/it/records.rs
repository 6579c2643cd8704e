//! Records of built-in tools, the same in every store.

use serde_json::json;
use toolgate_engine::records::{
    Amendment, Change, Expected, Listing, NewRecord, Owner, RECEIPTS_KEPT, Receipt, RecordSet, Records,
    Reindexed, SearchText, Turn,
};
use toolgate_engine::store::{Directory, StoreError};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;

use crate::scratch::{Database, Scratch};

fn record_set(project: u128, owner: Owner) -> RecordSet {
    RecordSet {
        project: ProjectId::from_bytes(project.to_be_bytes()),
        owner,
        kind: "note",
    }
}

fn mine() -> RecordSet {
    record_set(1, Owner::Entity(EntityId::from_bytes([7; 16])))
}

fn note(id: &str, text: &str) -> Change {
    Change::Put(NewRecord {
        id: id.into(),
        body: json!({ "said": text }).into(),
        text: Some(SearchText::new("", text)),
        data: None,
        due: None,
    })
}

/// The same test on every store.
macro_rules! on_every_store {
    ($($(#[$doc:meta])* async fn $name:ident($records:ident) $body:block)*) => {
        mod memory {
            use super::*;
            $( #[tokio::test] async fn $name() { let $records = &MemoryStore::new(); $body } )*
        }
        mod sqlite {
            use super::*;
            $(
                #[tokio::test]
                async fn $name() {
                    let scratch = Scratch::new();
                    let $records = &scratch.open();
                    $body
                }
            )*
        }
        mod postgres {
            use super::*;
            $(
                #[tokio::test]
                async fn $name() {
                    let $records = &Database::new().open().await;
                    $body
                }
            )*
        }
    };
}

/// Ids of what a question finds, best first.
async fn found(records: &impl Records, set: RecordSet, question: &str) -> Vec<String> {
    let found = records.find_records(&[set], question, 10).await.unwrap();
    found.hits.into_iter().map(|found| found.record.id).collect()
}

async fn ids(records: &impl Records, set: RecordSet) -> Vec<String> {
    let listing = Listing {
        limit: 100,
        ..Listing::default()
    };
    let listed = records.list_records(set, listing).await.unwrap();
    listed.into_iter().map(|record| record.id).collect()
}

on_every_store! {
    async fn what_is_put_is_there_and_counts_its_changes(records) {
        for now in [5, 9] {
            records.change_records(mine(), vec![], vec![note("a", "one")], Time(now)).await.unwrap();
        }
        let record = records.record(mine(), "a").await.unwrap().unwrap();
        assert_eq!((record.version, record.created, record.updated), (2, Time(5), Time(9)));
        assert_eq!(record.body.to_value(), json!({"said": "one"}));
        records.change_records(mine(), vec![], vec![Change::Remove("a".into())], Time(9)).await.unwrap();
        assert_eq!(records.record(mine(), "a").await.unwrap(), None);
    }

    async fn changes_are_made_together_or_not_at_all(records) {
        records.change_records(mine(), vec![], vec![note("a", "one")], Time(1)).await.unwrap();
        let changes = || vec![Change::Clear, note("b", "two")];
        for wrong in [Some(2), None] {
            let expected = vec![Expected { id: "a".into(), version: wrong }];
            let refused = records.change_records(mine(), expected, changes(), Time(2)).await;
            assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
            assert_eq!(ids(records, mine()).await, ["a"]);
        }
        let expected = vec![Expected { id: "a".into(), version: Some(1) }, Expected { id: "b".into(), version: None }];
        records.change_records(mine(), expected, changes(), Time(2)).await.unwrap();
        assert_eq!(ids(records, mine()).await, ["b"]);
    }

    async fn nobody_sees_what_others_keep(records) {
        let others = [
            record_set(2, mine().owner),
            record_set(1, Owner::Entity(EntityId::from_bytes([8; 16]))),
            record_set(1, Owner::Space(SpaceId::from_bytes([7; 16]))),
            record_set(1, Owner::Project),
            RecordSet { kind: "other", ..mine() },
        ];
        records.change_records(mine(), vec![], vec![note("a", "secret words")], Time(1)).await.unwrap();
        for other in others {
            assert_eq!(records.record(other, "a").await.unwrap(), None);
            assert_eq!(ids(records, other).await, Vec::<String>::new());
            assert_eq!(found(records, other, "secret").await, [""; 0]);
            assert_eq!(records.records_size(other).await.unwrap(), (0, 0));
            records.change_records(other, vec![], vec![Change::Clear], Time(2)).await.unwrap();
        }
        assert_eq!(ids(records, mine()).await, ["a"]);
    }

    async fn a_list_goes_by_id_and_prefix(records) {
        let notes = ["b/2", "a", "b/1", "b%", "c"].map(|id| note(id, id));
        records.change_records(mine(), vec![], notes.into(), Time(1)).await.unwrap();
        let listing = Listing { prefix: "b/".into(), after: None, limit: 10 };
        let listed = records.list_records(mine(), listing).await.unwrap();
        assert_eq!(listed.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["b/1", "b/2"]);
        let listing = Listing { prefix: String::new(), after: Some("b/1".into()), limit: 1 };
        assert_eq!(records.list_records(mine(), listing).await.unwrap()[0].id, "b/2");
    }

    async fn words_are_found_and_commands_of_the_search_are_words(records) {
        let notes = vec![note("a", "Über den Wolken"), note("b", "under the sea"), note("c", "the sea, the sea")];
        records.change_records(mine(), vec![], notes, Time(1)).await.unwrap();
        assert_eq!(found(records, mine(), "sea").await, ["c", "b"]);
        let hits = records.find_records(&[mine()], "sea", 10).await.unwrap().hits;
        assert!(hits[0].score > hits[1].score && hits[0].set == mine());
        for odd in ["\"", "NEAR(", "text:sea*", "AND OR NOT", "", "' --"] {
            records.find_records(&[mine()], odd, 10).await.unwrap();
        }
        records.change_records(mine(), vec![], vec![note("c", "dry land")], Time(2)).await.unwrap();
        assert_eq!(found(records, mine(), "sea").await, ["b"]);
    }

    async fn what_is_due_comes_in_time_and_in_order(records) {
        let due = |id: &str, due: i64| Change::Put(NewRecord {
            id: id.into(), body: json!({}).into(), text: None, data: Some(vec![1, 2]), due: Some(Time(due)),
        });
        records.change_records(mine(), vec![], vec![due("late", 30), due("soon", 10), due("next", 20)], Time(1)).await.unwrap();
        assert_eq!(records.next_due("note").await.unwrap(), Some(Time(10)));
        let found = records.due_records("note", Time(20), 10).await.unwrap();
        assert_eq!(found.iter().map(|(_, r)| r.id.as_str()).collect::<Vec<_>>(), ["soon", "next"]);
        assert!(found.iter().all(|(set, _)| *set == mine()));
        assert_eq!(records.next_due("other").await.unwrap(), None);
        assert_eq!(records.records_size(mine()).await.unwrap(), (3, 12));
        assert_eq!(records.record(mine(), "soon").await.unwrap().unwrap().data, Some(vec![1, 2]));
    }

    async fn a_record_set_never_has_more_than_a_change_allows(records) {
        let amend = async |changes| {
            let amendment = Amendment { at_most: Some(2), changes, ..Amendment::default() };
            records.amend_records(mine(), amendment, Time(1)).await
        };
        amend(vec![note("a", "one"), note("b", "two")]).await.unwrap();
        let refused = amend(vec![note("c", "three")]).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
        amend(vec![Change::Remove("a".into()), note("c", "three"), note("b", "again")]).await.unwrap();
        amend(vec![Change::Clear, note("d", "four")]).await.unwrap();
        assert_eq!(ids(records, mine()).await, ["d"]);
    }

    async fn a_receipt_is_kept_with_its_changes_and_for_its_time(records) {
        let amend = async |id: &str, key: &str, now: Time| {
            let receipt = Receipt { key: key.into(), answer: json!({"made": id}).into(), time: now };
            let amendment = Amendment { changes: vec![note(id, id)], receipt: Some(receipt), ..Amendment::default() };
            records.amend_records(mine(), amendment, now).await
        };
        amend("a", "call", Time(1)).await.unwrap();
        let refused = amend("b", "call", Time(2)).await;
        assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
        assert_eq!(ids(records, mine()).await, ["a"]);
        let told = async |project, key: &str| records.receipt(project, key).await.unwrap().map(|told| told.to_value());
        assert_eq!(told(mine().project, "call").await, Some(json!({"made": "a"})));
        assert_eq!(told(mine().project, "other").await, None);
        assert_eq!(told(ProjectId::from_bytes([9; 16]), "call").await, None);
        amend("c", "later", Time(2).after(RECEIPTS_KEPT)).await.unwrap();
        assert_eq!(told(mine().project, "call").await, None);
        assert!(told(mine().project, "later").await.is_some());
    }

    async fn a_prefix_is_a_prefix_to_the_last_character(records) {
        let odd = ["a", "a\u{10ffff}", "a\u{10ffff}b", "ab", "b", "\u{10ffff}", "\u{10ffff}z", "\u{d7ff}x", "\u{e000}"];
        records.change_records(mine(), vec![], odd.map(|id| note(id, id)).into(), Time(1)).await.unwrap();
        for (prefix, count) in [("a", 4), ("a\u{10ffff}", 2), ("\u{10ffff}", 2), ("\u{d7ff}", 1), ("", 9), ("z", 0)] {
            let listing = Listing { prefix: prefix.into(), after: None, limit: 100 };
            assert_eq!(records.list_records(mine(), listing).await.unwrap().len(), count, "{prefix:?}");
        }
    }

    async fn words_are_found_in_other_forms_and_without_accents(records) {
        let notes = vec![note("shoes", "Running shoes"), note("cafe", "Crème brûlée, Kafe\u{301}"),
            note("korea", "한국어 책"), note("dark", "тёмный лес"), note("book", "किताब")];
        records.change_records(mine(), vec![], notes, Time(1)).await.unwrap();
        for (words, id) in [("run shoe", "shoes"), ("RUNS", "shoes"), ("creme", "cafe"), ("brulée", "cafe"), ("café kafe", "cafe"),
            ("한국어", "korea"), ("ТЁМНЫЙ", "dark"), ("किताब", "book"), ("brûle\u{301}e", "cafe")] {
            assert_eq!(found(records, mine(), words).await, [id], "{words}");
        }
    }

    async fn scores_of_several_sets_compare(records) {
        let other = record_set(1, Owner::Project);
        let many = (0..9).map(|n| note(&format!("n{n}"), "the sea")).chain([note("far", "a lighthouse by the sea")]);
        records.change_records(other, vec![], many.collect(), Time(1)).await.unwrap();
        records.change_records(mine(), vec![], vec![note("near", "the key of the lighthouse")], Time(1)).await.unwrap();
        let hits = records.find_records(&[other, mine()], "lighthouse key", 10).await.unwrap().hits;
        let places: Vec<(RecordSet, &str)> = hits.iter().map(|hit| (hit.set, hit.record.id.as_str())).collect();
        assert_eq!(places, [(mine(), "near"), (other, "far")]);
    }

    async fn terms_of_an_earlier_analysis_are_listed_until_they_are_made_again(records) {
        let old = NewRecord { id: "old".into(), body: json!({}).into(), data: Some(vec![1]), due: None,
            text: Some(SearchText { analysis: 0, terms: vec![] }) };
        records.change_records(mine(), vec![], vec![Change::Put(old), note("new", "sea")], Time(1)).await.unwrap();
        let stale = records.stale_records("note", 10).await.unwrap();
        assert_eq!(stale.iter().map(|(set, record)| (*set, record.id.as_str(), record.data.clone())).collect::<Vec<_>>(),
            [(mine(), "old", Some(vec![1]))]);
        let again = |version| vec![Reindexed { id: "old".into(), version, text: SearchText::new("", "sea") }];
        records.reindex_records(mine(), again(2)).await.unwrap();
        assert_eq!(found(records, mine(), "sea").await, ["new"]);
        records.reindex_records(mine(), again(1)).await.unwrap();
        assert_eq!(records.stale_records("note", 10).await.unwrap(), []);
        assert_eq!(found(records, mine(), "sea").await.len(), 2);
        assert_eq!(records.record(mine(), "old").await.unwrap().unwrap().version, 1);
    }

    async fn sets_are_listed_and_measured_as_records_come_and_go(records) {
        let put = |id: &str, bytes: usize| Change::Put(NewRecord {
            id: id.into(), body: json!({}).into(), text: Some(SearchText::new("", "sea")), data: Some(vec![0; bytes]), due: None,
        });
        records.change_records(mine(), vec![], vec![put("a", 5), put("b", 7), put("a", 1)], Time(1)).await.unwrap();
        assert_eq!(records.records_size(mine()).await.unwrap(), (2, 12));
        assert_eq!(records.record_sets("note").await.unwrap(), [mine()]);
        assert_eq!(records.record_sets("other").await.unwrap(), []);
        records.change_records(mine(), vec![], vec![Change::Remove("b".into())], Time(1)).await.unwrap();
        assert_eq!(records.records_size(mine()).await.unwrap(), (1, 3));
        records.change_records(mine(), vec![], vec![Change::Clear], Time(1)).await.unwrap();
        assert_eq!(records.records_size(mine()).await.unwrap(), (0, 0));
        assert_eq!(records.record_sets("note").await.unwrap(), []);
        assert_eq!(found(records, mine(), "sea").await, [""; 0]);
    }

    async fn bytes_come_whole_and_by_themselves(records) {
        let put = |id: &str, data: Option<Vec<u8>>| Change::Put(NewRecord {
            id: id.into(), body: json!({}).into(), text: None, data, due: None,
        });
        let large = vec![7; 1 << 20];
        let changes = vec![put("a", Some(large.clone())), put("b", None), put("c", Some(vec![]))];
        records.change_records(mine(), vec![], changes, Time(1)).await.unwrap();
        assert_eq!(records.record(mine(), "a").await.unwrap().unwrap().data, Some(large.clone()));
        assert_eq!(records.record(mine(), "b").await.unwrap().unwrap().data, None);
        let listing = Listing { limit: 10, ..Listing::default() };
        let data = records.list_data(mine(), listing).await.unwrap();
        assert_eq!(data, [("a".to_owned(), large), ("c".to_owned(), vec![])]);
    }

    async fn what_an_agent_keeps_outlives_it_until_it_is_purged(records) {
        let (project, cook) = (mine().project, "cook".parse().unwrap());
        let own = record_set(1, Owner::Entity(entity_of(project, &cook)));
        records.put_agent(project, &cook, json!({}).into(), Time(1)).await.unwrap();
        for set in [own, mine(), RecordSet { kind: "other", ..own }] {
            records.change_records(set, vec![], vec![note("a", "secret")], Time(1)).await.unwrap();
        }
        assert!(records.remove_agent(project, &cook).await.unwrap());
        assert_eq!(ids(records, own).await, ["a"]);
        records.put_agent(project, &cook, json!({}).into(), Time(2)).await.unwrap();
        assert_eq!(ids(records, own).await, ["a"]);
        // Also one that is retired already, and nothing of others.
        assert!(records.remove_agent(project, &cook).await.unwrap());
        let purged = records.purge_agent(project, &cook).await.unwrap();
        let kinds = [own.kind, "other"].map(|kind| (kind.to_owned(), 1));
        assert_eq!(purged, Some(kinds.into_iter().collect()));
        assert_eq!(records.purge_agent(project, &cook).await.unwrap(), None);
        assert!(!records.remove_agent(project, &cook).await.unwrap());
        assert_eq!(ids(records, own).await, [""; 0]);
        assert_eq!(found(records, own, "secret").await, [""; 0]);
        assert_eq!(ids(records, RecordSet { kind: "other", ..own }).await, [""; 0]);
        assert_eq!(ids(records, mine()).await, ["a"]);
        // Records that a surviving run stores are not visible to the next agent of that name.
        records.change_records(own, vec![], vec![note("a", "late")], Time(2)).await.unwrap();
        records.put_agent(project, &cook, json!({}).into(), Time(3)).await.unwrap();
        assert_eq!(ids(records, own).await, [""; 0]);
        records.change_records(own, vec![], vec![note("a", "new")], Time(4)).await.unwrap();
        records.put_agent(project, &cook, json!({"n": 1}).into(), Time(5)).await.unwrap();
        assert_eq!(ids(records, own).await, ["a"]);
    }

    async fn changes_of_two_sets_that_share_a_turn_are_made_one_after_the_other(records) {
        let (one, other) = (mine(), record_set(1, Owner::Project));
        let turn = |version| Turn {
            set: RecordSet { kind: "turn", ..other },
            id: "stamp".into(),
            version,
        };
        let amend = async |set, id: &str, version| {
            let amendment = Amendment {
                changes: vec![note(id, "one")],
                turn: Some(turn(version)),
                ..Amendment::default()
            };
            records.amend_records(set, amendment, Time(1)).await
        };
        amend(one, "a", None).await.unwrap();
        assert!(matches!(amend(other, "b", None).await, Err(StoreError::Conflict)));
        assert_eq!(ids(records, other).await, [""; 0], "nothing was changed");
        amend(other, "b", Some(1)).await.unwrap();
        assert!(matches!(amend(one, "c", Some(1)).await, Err(StoreError::Conflict)));
        let stamp = records.record(turn(None).set, "stamp").await.unwrap().unwrap();
        assert_eq!(stamp.version, 2);
        // A change that is refused for another reason leaves the turn to the next.
        let refused = Amendment {
            expected: vec![Expected { id: "a".into(), version: None }],
            turn: Some(turn(Some(2))),
            ..Amendment::default()
        };
        assert!(matches!(records.amend_records(one, refused, Time(1)).await, Err(StoreError::Conflict)));
        amend(one, "c", Some(2)).await.unwrap();
    }
}
