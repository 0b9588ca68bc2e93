//! Graphs at random, and what plain recursion makes of them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Objects by number, each with the numbers of what it refers to; a number that no object has is a file.
type Graph = Vec<Vec<usize>>;

fn any_graph() -> impl Strategy<Value = Graph> {
    prop::collection::vec(prop::collection::vec(0_usize..9, 1..4), 1..8)
}

fn manifests(graph: &Graph) -> Vec<Arc<Manifest>> {
    let source = |number: &usize| {
        if *number < graph.len() {
            json!({ "ref": format!("./o{number}") })
        } else {
            json!({ "inline": { "path": format!("f{number}"), "content": "" } })
        }
    };
    graph
        .iter()
        .map(|entries| Arc::new(object(&json!(entries.iter().map(source).collect::<Vec<_>>()))))
        .collect()
}

/// Loads one key at a time, chosen by `order`.
fn load(graph: &Graph, mut order: impl FnMut(usize) -> usize) -> (Expanded, usize) {
    let manifests = manifests(graph);
    let mut catalog = Catalog::new();
    let mut rounds = 0;
    loop {
        rounds += 1;
        match expand(&manifests[0], "o0", &catalog) {
            Expansion::Complete(expanded) => return (*expanded, rounds),
            Expansion::Wanted(wanted) => {
                let wanted: Vec<_> = wanted.into_iter().collect();
                let key = wanted[order(wanted.len())].clone();
                let name = key.path.below_root().unwrap().to_string();
                let number: usize = name[1..].parse().unwrap();
                let manifest = Arc::clone(&manifests[number]);
                catalog.insert(key, Lookup::Object { name, manifest });
            }
        }
    }
}

/// What is expected, by plain recursion: each leaf's way with its file, or the word of its error.
fn expected(graph: &Graph, stack: &mut Vec<usize>, way: &str, leaves: &mut Vec<String>) {
    let node = *stack.last().unwrap();
    for (index, next) in graph[node].iter().enumerate() {
        let way = format!("{way}{index}");
        if *next >= graph.len() {
            leaves.push(format!("{way} f{next}"));
        } else if stack.contains(next) {
            leaves.push(format!("{way} RefCycle"));
        } else if stack.len() > 5 {
            leaves.push(format!("{way} RefTooDeep"));
        } else {
            stack.push(*next);
            expected(graph, stack, &format!("{way} o{next} "), leaves);
            stack.pop();
        }
    }
}

fn short(expanded: &Expanded) -> Vec<String> {
    let what = |leaf: &Leaf| match &leaf.source {
        Ok(LeafSource::Inline(inline)) => inline.path.to_string(),
        Err(LeafError::Ref(error)) => error.as_str().to_owned(),
        other => format!("{other:?}"),
    };
    let way = |leaf: &Leaf| {
        leaf.path
            .replace("code.sources[", "")
            .replace(" >", "")
            .replace(']', "")
    };
    expanded
        .leaves
        .iter()
        .map(|leaf| format!("{} {}", way(leaf), what(leaf)))
        .collect()
}

fn has_cycle(graph: &Graph, node: usize, state: &mut BTreeMap<usize, bool>) -> bool {
    if let Some(is_done) = state.get(&node) {
        return !is_done;
    }
    state.insert(node, false);
    let found = graph[node]
        .iter()
        .any(|next| *next < graph.len() && has_cycle(graph, *next, state));
    state.insert(node, true);
    found
}

proptest! {
    #[test]
    fn a_graph_expands_to_what_plain_recursion_finds(graph in any_graph()) {
        let (expanded, _) = load(&graph, |_| 0);
        let mut leaves = Vec::new();
        expected(&graph, &mut vec![0], "", &mut leaves);
        prop_assert_eq!(short(&expanded), leaves);
    }

    #[test]
    fn a_cycle_is_always_found(graph in any_graph()) {
        let (expanded, _) = load(&graph, |_| 0);
        let is_refused = expanded.leaves.iter().any(|leaf| {
            matches!(&leaf.source, Err(LeafError::Ref(RefError::Cycle(_) | RefError::TooDeep(_))))
        });
        if has_cycle(&graph, 0, &mut BTreeMap::new()) {
            prop_assert!(is_refused);
        }
    }

    #[test]
    fn the_order_of_loading_does_not_matter(graph in any_graph(), order in any::<prop::sample::Index>()) {
        let (first, rounds) = load(&graph, |_| 0);
        let (other, _) = load(&graph, |length| order.index(length));
        prop_assert_eq!(first, other);
        // Each object is looked up from each other at most once.
        prop_assert!(rounds <= graph.len() * graph.len() + 1);
    }
}
