use super::*;

fn index(names: &[&str]) -> WordIndex {
    WordIndex::build(names.iter().map(|name| Texts { name, ..Texts::default() }))
}

fn first<'a>(names: &[&'a str], query: &str) -> Option<&'a str> {
    index(names).search(query, 5).first().map(|(document, _)| names[*document as usize])
}

const NAMES: &[&str] = &[
    "executePython",
    "execute_code",
    "read_file",
    "delete_file",
    "create_payment_link",
    "list_files",
    "файл_удалить",
];

#[test]
fn queries_find_what_was_meant() {
    for (query, name) in [
        ("executePython", "executePython"),
        ("execute python", "executePython"),
        ("excutePython", "executePython"),
        ("exceutepython", "executePython"),
        ("exec", "execute_code"),
        ("EXECUTE_CODE", "execute_code"),
        ("delte file", "delete_file"),
        ("paymnt", "create_payment_link"),
        ("lst files", "list_files"),
        // Slips in each word, two in a long one, at the beginning, at the end, and while it is typed.
        ("crete paymnt lnik", "create_payment_link"),
        ("exceutepyhton", "executePython"),
        ("xelete_file", "delete_file"),
        ("deletd", "delete_file"),
        ("creatt", "create_payment_link"),
        ("удалить", "файл_удалить"),
    ] {
        assert_eq!(first(NAMES, query), Some(name), "{query}");
    }
}

#[test]
fn nonsense_and_nothing_find_nothing() {
    for query in ["", "   ", "___", "zzzzqqqq", "\u{200b}", "xq"] {
        assert_eq!(first(NAMES, query), None, "{query:?}");
    }
    assert!(index(NAMES).search(&"file ".repeat(10_000), 3).len() <= 3);
}

#[test]
fn common_words_and_single_letters_are_bounded_and_ranked() {
    let names: Vec<String> = (0..5_000).map(|n| format!("get_thing_{n}")).collect();
    let documents = names.iter().map(|name| Texts {
        name,
        description: "Gets a thing of all.",
        ..Texts::default()
    });
    let index = WordIndex::build(documents);
    assert_eq!(index.search("thing", 10).len(), 10);
    assert_eq!(index.search("g", 10).len(), 10);
    let found = index.search("get thing 4321", 3);
    assert_eq!(found.first().map(|(document, _)| *document), Some(4_321));
    let typo = index.search("thnig 17", 3);
    assert_eq!(typo.first().map(|(document, _)| *document), Some(17));
}

#[test]
fn names_outweigh_descriptions() {
    let documents = [
        Texts { name: "notes", description: "Has to do with payment.", ..Texts::default() },
        Texts { name: "payment", ..Texts::default() },
    ];
    assert_eq!(WordIndex::build(documents).search("payment", 2).first().map(|it| it.0), Some(1));
}

/// What is asked only to keep the index busy.
fn hostile(common: &[String]) -> Vec<String> {
    vec![
        common[0].clone(),
        "a".to_owned(),
        "a b".to_owned(),
        "a b c d e f g h".to_owned(),
        common[..8].join(" "),
        common.join(" "),
        "a ".repeat(100),
        common.concat(),
        common.iter().map(|word| format!("{word}x")).collect::<Vec<_>>().join(" "),
        "servicenamed servicenamex servicenamey servicenamez servicename_ servixename".to_owned(),
        "servicenam0000servicenam0001servicenam0002".to_owned(),
        "\u{200b}a\u{301}\u{202e}删除".to_owned(),
    ]
}

#[test]
fn no_query_makes_a_search_look_at_more_than_its_bound() {
    // Each word stands in every document, and each document has a word like all others'.
    let common: Vec<String> = (b'a'..=b'x')
        .map(|it| format!("{}{}", if it % 2 == 0 { 'a' } else { 'b' }, char::from(it)))
        .collect();
    let description = common[4..].join(" ");
    let documents: Vec<String> =
        (0..60_000).map(|n| format!("{} servicename{n:05}", common[..4].join(" "))).collect();
    let index = WordIndex::build(documents.iter().map(|name| Texts {
        name,
        also: "",
        description: &description,
    }));
    let mut most = Work::default();
    for query in hostile(&common) {
        let (found, work) = index.measured(&query, 500);
        assert!(found.len() <= 500);
        assert!(work.postings <= Work::MOST.postings, "{query}: {work:?}");
        assert!(work.triples <= Work::MOST.triples, "{query}: {work:?}");
        assert!(work.compared <= Work::MOST.compared, "{query}: {work:?}");
        most.postings = most.postings.max(work.postings);
        most.triples = most.triples.max(work.triples);
        most.compared = most.compared.max(work.compared);
    }
    // The bounds are met, not only stated.
    assert!(most.postings > 700_000 && most.triples >= 100_000 && most.compared >= 500, "{most:?}");
    // One word: the best of each word it stands for, however many have it.
    assert!(index.measured(&common[9], 500).1.postings <= MOST_RESULTS);
    assert!(index.measured("servicename", 500).1.postings <= MOST_WORDS_LIKE_IT * MOST_RESULTS);
}

#[test]
fn the_best_of_a_common_word_are_the_best_of_all() {
    // Names of many lengths, the word in names, whole names, titles and descriptions.
    let texts: Vec<(String, &str, &str)> = (0..4_000_usize)
        .map(|n| {
            let name = "k".repeat(1 + n * 7_919 % 97);
            match n % 4 {
                0 => (format!("pay_{name}"), "", ""),
                1 => (if n % 40 == 1 { "pay".to_owned() } else { name }, "", "to pay"),
                2 => (name, "pay", "pay"),
                _ => (format!("{name}_payment"), "", ""),
            }
        })
        .collect();
    let index = WordIndex::build(texts.iter().map(|(name, also, description)| Texts {
        name,
        also,
        description,
    }));
    for query in ["pay", "pa", "paymnet", "pay k", "payment kk pay"] {
        assert_eq!(index.search(query, 500), in_full(&index, query, 500), "{query}");
    }
}

/// The same search without a bound.
fn in_full(index: &WordIndex, query: &str, limit: usize) -> Vec<Scored> {
    let words = query_words(query);
    let mut work = Work::default();
    let mut groups: Vec<Group> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        groups.push(index.like(word, at + 1 == words.len(), &mut work));
    }
    if words.len() > 1 {
        groups.push(index.beginning_with(&words.concat()));
    }
    let mut tally = Tally::new(index.lengths.len());
    for group in &groups {
        index.count(group, usize::MAX, &mut tally, &mut work);
    }
    tally.best(&index.lengths, limit)
}

#[test]
fn of_many_words_that_begin_alike_the_commonest_count() {
    let documents: Vec<String> = (0..3_000)
        .map(|n| if n % 3 == 0 { "zoo_sync".to_owned() } else { format!("s{n:04}_x") })
        .collect();
    let index = WordIndex::build(documents.iter().map(|name| Texts { name, ..Texts::default() }));
    // The alphabet would have cut `sync` off: both words match, so none of the others comes first.
    let found = index.search("zoo s", 10);
    assert!(found.iter().all(|(_, score)| *score > 2 * MATCHED), "{found:?}");
}

#[test]
fn the_index_of_half_a_million_tools_fits_in_memory() {
    let documents: Vec<(String, String)> = (0..20_000)
        .map(|n| {
            let rare = format!("k{n:x}");
            let described = "gets a page of the records of a workspace and returns their fields";
            (format!("get_record_{rare}"), format!("{described} {rare}"))
        })
        .collect();
    let index = WordIndex::build(documents.iter().map(|(name, description)| Texts {
        name,
        also: "Records of Example",
        description,
    }));
    // At most 125 MB for 500,000, though every tool brings words of its own.
    let of_one = index.bytes() / documents.len();
    assert!(of_one < 250, "{of_one} bytes a tool");
}

#[test]
fn one_document_cannot_take_the_room_of_many() {
    let word = |n: usize| format!("{}{n} ", "w".repeat(300));
    let text: String = (0..10_000).map(word).collect();
    let index = WordIndex::build([Texts { name: &text, also: &text, description: &text }]);
    assert!(index.bytes() < 20_000, "{} bytes", index.bytes());
    let humps = "aB".repeat(100_000);
    let index = WordIndex::build([Texts { name: &humps, also: &humps, description: &humps }]);
    assert!(index.bytes() < 20_000, "{} bytes", index.bytes());
}
