//! What the parameters say together: code, commands, SQL, paths, addresses, money, recipients, secrets.

use super::schema::{Kind, Parameter};
use crate::lexicon::{is_one_of, list};
use crate::rating::Signal;
use crate::text::{cut, sentence_words};

/// Parameters that matter, each as a place and a quote.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) signals: Vec<Signal>,
    pub(super) code: Option<Spot>,
    pub(super) command: Option<Spot>,
    pub(super) sql: Option<Spot>,
    pub(super) amount: Option<Spot>,
    pub(super) currency: Option<Spot>,
    pub(super) recipient: Option<Spot>,
    pub(super) secret: Option<Spot>,
    pub(super) mass: Option<Spot>,
    pub(super) force: Option<Spot>,
    pub(super) overwrite: Option<Spot>,
    /// `method` and `path` of any request.
    pub(super) request: Option<Spot>,
    /// A folder that results are left in.
    pub(super) output_folder: Option<Spot>,
    /// A path, anywhere, that a result is written to.
    pub(super) save_path: Option<Spot>,
    /// A secret that the answer holds.
    pub(super) told_secret: Option<Spot>,
    /// Data of a person that the answer holds.
    pub(super) told_person: Option<Spot>,
    /// Something other than flags, numbers and listed choices can be passed.
    pub(super) free_input: bool,
}

impl Facts {
    /// Nothing that a caller could do harm with.
    pub(super) fn is_harmless(&self) -> bool {
        let grave = [
            &self.code,
            &self.command,
            &self.sql,
            &self.amount,
            &self.secret,
            &self.force,
            &self.overwrite,
            &self.request,
        ];
        grave.iter().all(|it| it.is_none())
    }
}

/// Where a fact stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) place: String,
    pub(super) quote: String,
}

impl Spot {
    fn of(parameter: &Parameter<'_>) -> Self {
        Self { place: parameter.path.clone(), quote: parameter.name.to_owned() }
    }
}

/// Reads the parameters; `speaks_sql` says whether the tool's own texts name SQL.
pub(super) fn read(parameters: &[Parameter<'_>], speaks_sql: bool, has_schema: bool) -> Facts {
    let mut facts = Facts::default();
    for parameter in parameters {
        note_content(&mut facts, parameter, speaks_sql);
        note_extent(&mut facts, parameter);
    }
    note_request(&mut facts, parameters);
    if facts.amount.is_some() && (facts.currency.is_some() || facts.recipient.is_some()) {
        facts.signals.push(Signal::Money);
    }
    if !has_schema {
        facts.signals.push(Signal::NoSchema);
    }
    if parameters.iter().filter(|it| it.depth == 0).count() > 12 {
        facts.signals.push(Signal::ManyParameters);
    }
    let free = |it: &Parameter<'_>| it.is_free_text() || matches!(it.kind, Kind::List | Kind::Open);
    facts.free_input = !has_schema || parameters.iter().any(free);
    facts.signals.sort_unstable();
    facts.signals.dedup();
    facts
}

impl Facts {
    /// What the output schema says that an answer holds.
    pub(super) fn note_answer(&mut self, members: &[Parameter<'_>]) {
        for member in members {
            if is_secret(member) {
                keep(&mut self.told_secret, member);
                self.signals.push(Signal::Credentials);
            }
            if is_personal(member) {
                keep(&mut self.told_person, member);
                self.signals.push(Signal::PersonalData);
            }
        }
        self.signals.sort_unstable();
        self.signals.dedup();
    }
}

fn keep(place: &mut Option<Spot>, parameter: &Parameter<'_>) {
    if place.is_none() {
        *place = Some(Spot::of(parameter));
    }
}

/// What a parameter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Code,
    Command,
    Sql,
    Secret,
    Url,
    Path,
    Amount,
    Currency,
    Recipient,
    Other,
}

/// The first role that fits, the gravest first.
pub(crate) fn role(parameter: &Parameter<'_>, speaks_sql: bool) -> Role {
    match () {
        () if is_code(parameter) => Role::Code,
        () if is_command(parameter) => Role::Command,
        () if is_sql(parameter, speaks_sql) => Role::Sql,
        () if is_secret(parameter) => Role::Secret,
        () if is_url(parameter) => Role::Url,
        () if is_path(parameter) => Role::Path,
        () if is_amount(parameter) => Role::Amount,
        () if parameter.ends(list!(CURRENCIES)) => Role::Currency,
        () if is_recipient(parameter) => Role::Recipient,
        () => Role::Other,
    }
}

fn note_content(facts: &mut Facts, parameter: &Parameter<'_>, speaks_sql: bool) {
    let role = role(parameter, speaks_sql);
    facts.signals.extend(match role {
        Role::Code => Some(Signal::FreeformCode),
        Role::Command => Some(Signal::Command),
        Role::Sql => Some(Signal::RawSql),
        Role::Secret => Some(Signal::Credentials),
        Role::Url => Some(Signal::Url),
        Role::Path => Some(Signal::FilePath),
        Role::Recipient => Some(Signal::Recipient),
        Role::Other if parameter.kind == Kind::Open => Some(Signal::OpenObject),
        Role::Amount | Role::Currency | Role::Other => None,
    });
    match role {
        Role::Code => keep(&mut facts.code, parameter),
        Role::Command => keep(&mut facts.command, parameter),
        Role::Sql => keep(&mut facts.sql, parameter),
        Role::Secret => keep(&mut facts.secret, parameter),
        Role::Amount => keep(&mut facts.amount, parameter),
        Role::Currency => keep(&mut facts.currency, parameter),
        Role::Recipient => keep(&mut facts.recipient, parameter),
        Role::Path => note_path(facts, parameter),
        Role::Url | Role::Other => {}
    }
}

fn note_path(facts: &mut Facts, parameter: &Parameter<'_>) {
    if is_save_path(parameter) {
        keep(&mut facts.save_path, parameter);
    } else if parameter.has(list!("output out save")) {
        keep(&mut facts.output_folder, parameter);
    }
}

fn note_extent(facts: &mut Facts, parameter: &Parameter<'_>) {
    if is_personal(parameter) {
        facts.signals.push(Signal::PersonalData);
    }
    if is_mass(parameter) {
        keep(&mut facts.mass, parameter);
        facts.signals.push(Signal::MassOperation);
    }
    if parameter.kind == Kind::Flag
        && parameter.has(list!("force forced hard skip bypass unsafe nocheck"))
    {
        keep(&mut facts.force, parameter);
    }
    if parameter.kind == Kind::Flag && parameter.has(list!("overwrite replace clobber")) {
        keep(&mut facts.overwrite, parameter);
    }
}

fn note_request(facts: &mut Facts, parameters: &[Parameter<'_>]) {
    let method = parameters.iter().find(|it| it.is(list!("method httpmethod verb requestmethod")));
    let target = parameters
        .iter()
        .any(|it| it.is(list!("path url endpoint uri route service apipath resource")));
    let writes = |it: &str| is_one_of("post put patch delete", &it.to_ascii_lowercase());
    let any = |it: &&Parameter<'_>| it.choices.is_empty() || it.choices.iter().any(|it| writes(it));
    facts.request = method.filter(any).filter(|_| target).map(Spot::of);
}

fn mentions(text: &str, words: &str) -> bool {
    sentence_words(cut(text, 300), 60).iter().any(|word| is_one_of(words, &word.text))
}

fn is_code(parameter: &Parameter<'_>) -> bool {
    if !parameter.is_free_text() && parameter.kind != Kind::List {
        return false;
    }
    let said = parameter.description;
    if parameter.is(list!(CODE)) {
        return true;
    }
    if parameter.is(list!("code script snippet program function")) {
        return parameter.kind != Kind::List && !mentions(said, OTHER_CODES);
    }
    parameter.is(list!("expression source body content input text cell"))
        && mentions(said, "javascript python typescript lua powershell bash")
        && mentions(said, "execute run evaluate expression executed evaluated")
}

fn is_command(parameter: &Parameter<'_>) -> bool {
    let free =
        parameter.is_free_text() || parameter.kind == Kind::List && parameter.choices.is_empty();
    free && parameter.is(list!("cmd command commands shell commandline shellcommand bash powershell cmdline execcommand argv"))
}

fn is_sql(parameter: &Parameter<'_>, speaks_sql: bool) -> bool {
    if !parameter.is_free_text() && parameter.kind != Kind::List {
        return false;
    }
    parameter.has(list!("sql cypher"))
        || parameter.is(list!("query queries statement statements rawquery querystring"))
            && (speaks_sql || mentions(parameter.description, "sql cypher ddl dml tsql plsql"))
}

fn is_secret(parameter: &Parameter<'_>) -> bool {
    let named = parameter.has(list!(
        "password passwd secret credentials credential passphrase mnemonic apikey privatekey"
    )) || parameter.is(list!(KEYS));
    let token = parameter.ends(list!("token")) && !parameter.has(list!(OTHER_TOKENS));
    !matches!(parameter.kind, Kind::Number | Kind::Flag) && (named || token)
}

/// What a person's own data are called, in what is passed and in what is answered.
fn is_personal(parameter: &Parameter<'_>) -> bool {
    parameter.has(list!("ssn passport salary birthday birthdate diagnosis"))
        || parameter.is(list!(
            "dateofbirth dob socialsecuritynumber nationalid taxid iban homeaddress cardnumber \
             creditcardnumber medicalrecord phonenumber"
        ))
}

fn is_url(parameter: &Parameter<'_>) -> bool {
    !matches!(parameter.kind, Kind::Flag | Kind::Number)
        && (matches!(parameter.format, Some("uri" | "url"))
            || parameter.ends(list!("url urls uri uris href website webhook endpoint"))
            || parameter.is(list!("link domain host hostname site")))
}

fn is_path(parameter: &Parameter<'_>) -> bool {
    !matches!(parameter.kind, Kind::Flag | Kind::Number)
        && !parameter.has(list!(
            "json xpath jsonpath url api css field property jmes key class category query id ids"
        ))
        && (parameter
            .ends(list!("path paths filepath filename dir directory folder cwd file files"))
            || parameter.is(list!("workingdirectory workdir rootdir projectroot workspaceroot")))
}

/// Where to write, as opposed to what to read; a bare file name stays in the tool's own folder.
fn is_save_path(parameter: &Parameter<'_>) -> bool {
    let said = mentions(parameter.description, "save saved saving write written")
        && !mentions(parameter.description, "read");
    let named = parameter.has(list!("output out save")) && parameter.ends(list!("path"));
    !parameter.ends(list!("filename name")) && !parameter.is(list!("filename")) && (said || named)
}

fn is_amount(parameter: &Parameter<'_>) -> bool {
    matches!(parameter.kind, Kind::Number | Kind::Text | Kind::Open)
        && (parameter.ends(list!("amount price lamports wei sats amt cents"))
            || parameter.is(list!(AMOUNTS)))
        && !parameter.has(list!("min max filter above below gte lte range lower upper level"))
}

fn is_recipient(parameter: &Parameter<'_>) -> bool {
    !matches!(parameter.kind, Kind::Flag | Kind::Number)
        && (parameter.is(list!(RECIPIENTS)) || parameter.has(list!("recipient recipients")))
}

fn is_mass(parameter: &Parameter<'_>) -> bool {
    let objects = || parameter.schema.get("items").and_then(|it| it.get("properties")).is_some();
    let many = parameter.kind == Kind::List
        && parameter.depth == 0
        && parameter.choices.is_empty()
        && (parameter.ends(list!(MANY)) || objects());
    let all = parameter.kind == Kind::Flag
        && parameter.is(list!("all everything deleteall removeall applytoall recursive"));
    many || all
}

/// Names, run together, that can only mean code.
const CODE: &str = "sourcecode javascript pythoncode jscode codesnippet codeblock scriptcontent scripttext codetoexecute \
    pagefunction functionbody functiondeclaration python typescript luascript shellscript scriptcode codeblocks \
    evalcode usercode";

/// Words near `code` that make it a country, a coupon or the like.
const OTHER_CODES: &str = "country currency status error language locale zip postal promo coupon discount auth authorization \
    oauth verification iso airport airline iata icao region area invite invitation referral otp 2fa voucher share station \
    stock ticker exit product item confirmation pairing qr symbol identifier unique digit school course category industry \
    naics sic hs tariff color";

const KEYS: &str = "apikey accesskey privatekey secretkey authtoken accesstoken bearertoken refreshtoken seedphrase sshkey \
    apitoken cookies";

/// Words near `token` that make it a page mark, a coin or a count.
const OTHER_TOKENS: &str = "page next max continuation cursor sync count limit pagination num min budget change resume output \
    tokens address symbol contract mint id in out from to type name";

const CURRENCIES: &str = "currency currencies iban swift";

const AMOUNTS: &str = "amountin amountout amountcents amountusd amounttopay totalamount unitprice notional importe betrag \
    montant";

const RECIPIENTS: &str = "to cc bcc recipient recipients toaddress toaddresses emailto sendto toemail phonenumber destination \
    destinationaddress recipientaddress payee beneficiary mailto tophone tonumber recipientemail recipientid destinatario \
    destinataire empfanger towallet invitee invitees";

const MANY: &str = "ids uuids items entities records rows documents names keys paths files updates operations messages users \
    recipients changes deletions observations relations emails tasks issues";
