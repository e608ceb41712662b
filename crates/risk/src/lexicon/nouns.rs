//! Nouns that bear on the rating, and ones that only look like run-together verbs.

use std::collections::HashSet;
use std::sync::LazyLock;

fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

fn has(words: &HashSet<&'static str>, word: &str) -> bool {
    words.contains(word)
        || word.strip_suffix('s').is_some_and(|one| words.contains(one))
        || word.strip_suffix("es").is_some_and(|one| words.contains(one))
}

macro_rules! noun_sets {
    ($($(#[$meta:meta])* $name:ident = $words:literal;)+) => {
        $($(#[$meta])*
        pub(crate) fn $name(word: &str) -> bool {
            static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set($words));
            has(&WORDS, word)
        })+
    };
}

noun_sets! {
    /// A name that ends in one of these and holds no verb reads something.
    is_read_noun = "status info information stat statistic detail log schema history version metric doc documentation help \
        summary tree insight metadata overview example guide health report result activity trend dashboard analytics usage \
        balance price pricing quote rate weather forecast news leaderboard ranking catalog catalogue manifest readme \
        changelog reference tutorial best practice instruction spec specification definition profile identity context config \
        configuration diff timeline feed inventory availability capability feature listing index size count depth content \
        transcript recommendation suggestion diagnostic lineage topology neighbor dependency glossary faq hint tip template \
        list message request response event alert review comment time date now today clock type";
    /// Money changes hands, or a duty to pay is made.
    is_money_noun = "payment money fund charge refund payout invoice wallet checkout subscription transfer \
        payroll crypto bitcoin btc eth usdc usdt sol stablecoin purchase billing remittance \
        coin cash cart card bill token nft donation gift premium dividend loan mortgage escrow withdrawal deposit bet wager stock share_trade";
    is_secret_noun = "password secret credential passphrase apikey passwd pwd mnemonic keychain vault \
        keystore privatekey otp totp 2fa mfa pat jwt cookie certificate env dotenv";
    /// People's own data.
    is_person_noun = "email mail inbox message contact patient medical health_record employee salary candidate payroll ssn \
        passport customer conversation chat sms whatsapp gmail calendar transcript location bank account_number card transaction";
    /// Links between things: taking one away loses nothing that cannot be put back.
    is_relation_noun = "approval tag label reaction member membership follower assignee assignment role permission collaborator reviewer \
        participant attendee association subscription favorite bookmark star like vote mapping pin highlight watcher filter \
        user_from group_member";
    /// What runs whatever it is given.
    is_interpreter = "python shell bash zsh terminal powershell cmd console repl javascript nodejs node ruby perl lua interpreter \
        code command sandbox exec jupyter ipython";
}

static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    set(
        "under unit unite union unique universe united unload resource restore result request report response rest return review \
        reply release receipt reason recent red reduce regex region register remote rename repeat replay reserve reset resort \
        resume retail retry reverse reward rescue research reference address addendum addition addon additional settings setting settle setup readme readiness reader readable ready \
        reading listing listener listen running runner runtime runbook runway rundown findings finding finder sender sendgrid \
        writer writing editor editorial edition payload payment payroll payee paypal payout research dataset widget target \
        budget gadget spreadsheet playlist checklist wishlist whitelist allowlist denylist blocklist watchlist mailing \
        postgres postgresql postman markdown market marketing buildkite typescript sharepoint dropbox dropdown clearance \
        checkout checkpoint showcase viewport browser counter country copyright callback \
        user users file files folder folders directory document documents doc docs record records row rows table tables item \
        items entity entities issue issues ticket tickets task tasks project projects repo repos repository repositories \
        branch branches commit commits message messages mail email emails order orders invoice invoices customer customers \
        product products page pages post posts comment comments event events calendar contact contacts note notes image \
        images video videos code script sql query queries command db database databases bucket buckets object objects key keys \
        token tokens secret secrets config value values data list lists info status state details schema node nodes graph \
        edge edges group groups team teams role roles account accounts server servers instance instances job jobs build \
        builds workflow workflows pipeline pipelines deployment deployments environment variable variables env all many one \
        bulk batch by id ids name names url link links tag tags label labels version versions release releases stock price \
        balance wallet transaction transactions weather time date tool tools resource resources prompt prompts chat session \
        sessions log logs metric metrics alert alerts rule rules policy policies search results media channel channels",
    )
});

/// A whole word that is a noun, so that no verb is looked for inside it.
pub(super) fn is_known(word: &str) -> bool {
    KNOWN.contains(word)
}

/// A known noun, or two run together: `userinfo`.
pub(super) fn is_made_of_known(word: &str) -> bool {
    is_known(word)
        || (3..word.len().saturating_sub(2)).any(|at| {
            word.split_at_checked(at).is_some_and(|(left, right)| is_known(left) && is_known(right))
        })
}
