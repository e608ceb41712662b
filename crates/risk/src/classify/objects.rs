//! Verbs whose meaning hangs on their object: opening a page and opening a record, removing a row
//! and removing a tag, running a search and running a program.

use super::evidence::Weight;
use crate::lexicon::{self, Act, Form};

/// A verb with what stands around it.
struct Phrase<'a> {
    act: Act,
    weight: Weight,
    verb: &'a str,
    others: &'a [&'a str],
    in_name: bool,
}

type Meaning = Option<(Act, Weight)>;

/// The act and weight of `verb` with these other words around it, in their order.
pub(super) fn refine(
    act: Act,
    weight: Weight,
    verb: &str,
    others: &[&str],
    in_name: bool,
) -> (Act, Weight) {
    let is_base = lexicon::verb(verb).is_some_and(|it| it.form == Form::Base);
    let verb = if is_base { verb } else { verb.trim_end_matches('s') };
    let phrase = Phrase { act, weight, verb, others, in_name };
    phrase
        .paying()
        .or_else(|| phrase.running())
        .or_else(|| phrase.reading())
        .or_else(|| phrase.changing())
        .unwrap_or((act, weight))
}

const fn strong(act: Act) -> (Act, Weight) {
    (act, Weight::Strong)
}

impl Phrase<'_> {
    /// One of the other words is in this list, or is the plural of one that is.
    fn about(&self, list: &str) -> bool {
        self.others.iter().any(|other| {
            lexicon::is_one_of(list, other)
                || other.strip_suffix("es").is_some_and(|one| lexicon::is_one_of(list, one))
                || other.strip_suffix('s').is_some_and(|one| lexicon::is_one_of(list, one))
                || other.strip_suffix("ies").is_some_and(|stem| {
                    list.split_whitespace().any(|it| it.strip_suffix('y') == Some(stem))
                })
        })
    }

    fn is(&self, list: &str) -> bool {
        lexicon::is_one_of(list, self.verb)
    }

    fn paying(&self) -> Meaning {
        // `Orders a pizza` buys; `order by date` and a name such as `order_list` do not.
        if self.verb == "order" && !self.in_name && !self.about("by of") {
            return Some(strong(Act::Pay));
        }
        if self.is("open close") && self.about("position")
            || self.is("load put") && self.about("money funds cash")
            || self.verb == "send" && self.about(COINS)
            // One Russian verb is to translate, and to transfer.
            || self.is("перевести переводит переведи") && self.about(SUMS)
        {
            return Some(strong(Act::Pay));
        }
        let unsure = lexicon::verb(self.verb).is_some_and(|it| it.act == Act::Pay && it.weak);
        if self.act == Act::Pay && unsure {
            let money = self.others.iter().any(|it| lexicon::is_money_noun(it));
            let other = Some((Act::Write, self.weight.min(Weight::Fair)));
            return if money { Some(strong(Act::Pay)) } else { other };
        }
        if self.is(BINDS_MONEY) && self.about(PAYMENTS) { Some(strong(Act::Pay)) } else { None }
    }

    fn running(&self) -> Meaning {
        if self.is("run execute exec perform") {
            // Who calls a tool `run_report` means to run something.
            let runs = self.in_name && self.verb != "perform";
            let looks_up =
                self.others.iter().take(2).any(|it| {
                    lexicon::is_one_of("search find aggregation lookup promql logql", it)
                });
            return match (runs, looks_up) {
                (true, _) => Some(strong(Act::Execute)),
                (_, true) => Some(strong(Act::Read)),
                _ if self.about(RAW) => Some(strong(Act::Execute)),
                _ if self.about(QUERIES) => Some(strong(Act::Read)),
                _ => None,
            };
        }
        if self.verb == "evaluate" {
            return match () {
                () if self.about("mathematical math arithmetic formula") => {
                    Some(strong(Act::Compute))
                }
                () if self.about(RAW) || self.about("expression page") => {
                    Some(strong(Act::Execute))
                }
                () => None,
            };
        }
        if self.is("start launch begin") && self.about(STARTED) && !self.about(OBSERVED) {
            return Some(strong(Act::Execute));
        }
        if self.verb == "test" && self.about("test suite unit run all sim device") {
            return Some((Act::Execute, Weight::Fair));
        }
        if self.verb == "open" {
            let act = if self.about(OPENED) { Act::Read } else { Act::Execute };
            return Some((act, self.weight));
        }
        None
    }

    fn reading(&self) -> Meaning {
        // Watching changes nothing; where the recording is kept is the parameters' matter.
        if self.is("start stop begin record") && self.about(OBSERVED) {
            return Some(strong(Act::Read));
        }
        if self.verb == "take" && self.about("screenshot snapshot picture photo look")
            || self.is("make perform do submit") && self.about(QUERIES)
            || self.is("provide give offer") && self.about(TOLD)
        {
            return Some(strong(Act::Read));
        }
        if self.is("create generate") && self.about(WORKED_OUT)
            || self.verb == "add" && self.about("number integer")
            || self.verb == "isolate" && self.about("audio voice vocal stem track speech")
            || self.verb == "simulate"
                && self.about("transaction trade swap payment scenario cost portfolio")
        {
            return Some(strong(Act::Compute));
        }
        if self.is("create generate") && !self.in_name && self.about("plan recommendation") {
            return Some((Act::Compute, Weight::Fair));
        }
        let connects = self.verb == "connect" && self.about("database db cluster instance")
            || self.verb == "close" && self.about("connection");
        connects.then_some((Act::Read, Weight::Fair))
    }

    fn changing(&self) -> Meaning {
        let relation = || self.others.iter().any(|it| lexicon::is_relation_noun(it));
        let taken_off = || self.about("from") && self.about(COLLECTIONS);
        if self.is("remove clear unset drop empty") && (relation() || taken_off()) {
            return Some((Act::Write, self.weight));
        }
        if self.is("move send put") && self.about("trash bin recycle") && !self.about("from") {
            return Some(strong(Act::Delete));
        }
        if self.verb == "drop"
            && self.about(
                "table database db collection index schema column view stream keyspace topic",
            )
            || self.verb == "reset"
                && self.about("factory database db data graph device everything")
        {
            return Some(strong(Act::Delete));
        }
        // Who holds such an address writes with it.
        let key_to_write = self.about("presigned signed upload") && self.about("url uri link");
        if self.is("get create generate request fetch") && key_to_write && self.about("upload put")
        {
            return Some(strong(Act::Write));
        }
        if self.verb == "report"
            && self.about("bug issue problem abuse spam feedback user incident mistake")
        {
            return Some(strong(Act::Send));
        }
        if self.verb == "drop" && self.about("element drag onto file pin page mouse")
            || self.verb == "resolve" && self.about(RESOLVED)
            || self.verb == "load" && self.about("into sample data dataset")
            || self.verb == "select" && self.about("option dropdown element date")
            || self.is("check sign log clock") && self.about("in out up on off")
            || self.is("turn switch") && self.about("on off")
        {
            return Some(strong(Act::Write));
        }
        // `add` alone is as often a sum.
        let alone = self.verb == "add" && self.in_name && self.others.is_empty();
        alone.then_some((self.act, Weight::Fair))
    }
}

/// Acts that, done to a payment, move money or bind someone to.
const BINDS_MONEY: &str = "create add send make submit place process initiate issue execute capture post confirm \
    authorize authorise schedule approve new start complete fund register record open trigger perform finalize \
    finalise settle void build prepare request transfer sign";

const PAYMENTS: &str = "payment charge refund payout checkout purchase money withdrawal deposit donation trade invoice \
    bet wager loan funds cash payroll order swap transfer paylink remittance giftcard gift";

const COINS: &str =
    "usdc usdt usd eur eth btc sol bitcoin ethereum crypto coin stablecoin cryptocurrency lamports";

const SUMS: &str = "деньги денег средства сумма сумму счет счёт рубли рублей";

/// What holds things that live elsewhere too.
const COLLECTIONS: &str =
    "playlist watchlist wishlist shortlist queue cart favorites favourites collection";

const RESOLVED: &str = "thread issue discussion conflict comment incident alert dispute case ticket conversation \
    review finding error note";

/// What is opened to be read.
const OPENED: &str = "node file document doc record note entity thread message email article entry";

/// Work that is only looking something up.
const QUERIES: &str = "query search report aggregation analysis scan check lookup find diagnostic audit promql logql \
    inspection review comparison calculation assessment benchmark validation";

/// Queries in a language that can also change things.
const RAW: &str = "sql database db postgresql postgres mysql sqlite cypher statement command code script ddl dml \
    snowflake clickhouse bigquery graphql mutation javascript python shell tests";

/// What is only worked out and handed back.
const WORKED_OUT: &str = "embedding completion diagram locator summary snippet explanation hash uuid regex suggestion command preview";

const STARTED: &str = "job process server container workflow pipeline session instance vm app task service machine crawl \
    build deployment run agent";

const OBSERVED: &str = "recording tracing trace video screencast profiling profiler capture";

const TOLD: &str = "information instruction guidance guide documentation list detail example recommendation summary \
    overview insight metadata statistics analysis status";
