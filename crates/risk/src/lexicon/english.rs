//! English verbs. `*`: as often a noun; `~`: depends on its object; `?`: says nothing by itself.

use super::Act;

pub(super) const LISTS: &[(Act, &str)] = &[
    (
        Act::Read,
        "get list read recognize recognise paginate iterate fetch retrieve search* find query* lookup look show view* describe display browse \
         inspect check* count* explain audit* peek poll* watch* monitor* tail* grep glob stat ping whoami \
         resolve~ discover enumerate explore examine identify detect screenshot* snapshot* capture~* \
         download export wait~ select~ crawl scrape filter* obtain return* provide~ access* \
         determine report* review* load~ track~* listen observe contain~ offer~ supply~ \
         investigate research* see visualize visualise print~ output~* collect~ gather~ traverse \
         locate traceroute introspect surface~* head* trace* highlight~* hide~ seek \
         aggregate* scan* profile~* pull~* recall remind~ advise match* trending* lint test~* \
         quote~* walk~ survey* know cite deduce expose~ recover~ learn~ ask~ consult answer~*",
    ),
    (
        Act::Compute,
        "decompile disassemble analyze analyse compare diff* preview* parse validate verify measure estimate* predict recommend \
         suggest rank* evaluate~ calculate compute convert~ translate classify tokenize tokenise decode \
         encode hash* format~* summarize summarise extract sort infer score* forecast* diagnose \
         echo* greet think plan~* reason~* normalize normalise transform~* render~ \
         solve benchmark* correlate interpret outline* rephrase rewrite~ \
         proofread categorize categorise beautify prettify minify~ transcribe demonstrate tally assess \
         critique brainstorm paraphrase deduplicate~ geocode map~* segment~* embed~ sum* subtract multiply \
         divide minimize~ enrich~ autocomplete sanitize~ sanitise~ mask~ redact~",
    ),
    (
        Act::Write,
        "finalize finalise scale~* dismiss protect optimize~ optimise~ vacuum defragment create add update* set put insert write edit modify change* patch* save store~* upload append rename \
         move copy duplicate clone* fork* merge* assign unassign reassign attach detach link~* unlink label* tag* \
         mark comment* upsert replace import sync* synchronize synchronise migrate restore revert undo redo \
         archive~* unarchive enable disable activate deactivate toggle* configure setup~* initialize initialise init \
         upgrade* downgrade* grant* revoke rotate lock~* unlock block~* unblock ban unban mute unmute \
         deny record~* log~* draft~* compose~ generate~ build~* commit~* push~* stash* release~* promote demote \
         scaffold~ apply fill type~* click press drag* hover scroll* swipe* tap~* resize emulate simulate~ focus~* \
         connect~ disconnect~ login logout authenticate~ authorize~ enter~ remember ingest index~* play~* \
         register enroll sign~* schedule~* book~* reserve~* close reopen complete~ finish~ cancel \
         subscribe~ unsubscribe follow~ unfollow like~* react pin* unpin star~* unstar vote* upvote downvote approve reject accept \
         decline alter adjust increment decrement extend bind unbind rebase compress~ encrypt~ decrypt~ zip~* \
         gzip* unzip crop~ trim~ design~* draw~ paint~ synthesize~ synthesise~ transition* snooze \
         acknowledge unacknowledge escalate suspend resume~* pause~* unpause mint~ provision \
         associate disassociate dissociate join leave~ exchange~ reset~* override~* overwrite rebuild~* \
         reindex refresh~* renew reorder reposition prepend prepare~ define submit file~* rate~* \
         mutate persist populate seed~* organize organise hydrate stage~* unstage \
         switch~* flag~* claim~* shrink grow~ mount~ unmount \
         propose tweak split~* combine~ produce~ craft~ make~ take~ \
         contribute acquire~ allocate deallocate quarantine~* isolate~ whitelist~* blacklist~* allowlist~* denylist~* \
         annotate~ correct~ fix~* refactor ensure~ implement~ bump~ cherrypick bootstrap backfill \
         favorite* bookmark* personalize personalise customise customize tailor~ place~*",
    ),
    (
        Act::Send,
        "send email* mail* message~* notify post* reply tweet* publish unpublish broadcast* share* invite* forward* \
         dm* text~* call~* dial* alert~* announce respond~ retweet repost contact~* ring~* fax* sms*",
    ),
    (
        Act::Execute,
        "run execute exec* eval invoke launch* start stop restart reboot shutdown* kill* terminate abort \
         spawn trigger* deploy* redeploy navigate goto install exit interrupt compile~ perform? dispatch~* rerun retry* \
         replay~* halt boot* power~* operate orchestrate delegate automate debug~* train~* finetune",
    ),
    (
        Act::Delete,
        "delete remove drop~* destroy erase wipe purge clear~ truncate trash* empty~* uninstall unregister~ \
         decommission flush forget expunge prune nuke discard del rm rmdir obliterate deprovision eradicate unset \
         deregister dismantle shred",
    ),
    (
        Act::Pay,
        "pay charge~* refund* transfer~* buy purchase* sell withdraw deposit* invest donate remit repay lend borrow \
         payout* liquidate redeem~ stake~* unstake~ bet~* wager* reimburse disburse tip~* bid~* topup fund~* order~* \
         trade~* swap~* bridge~* checkout~*",
    ),
    (
        Act::Write,
        "request~* process? do? use? work? interact? confirm? try? proceed? continue? help? support? facilitate? begin? need? want? \
         go? let? serve? include? require? give? hold? keep? bring? turn~ allow? manage~ handle~ administer~ control~ maintain~ open~",
    ),
];

/// Nouns that name an act.
pub(super) const NOUNS_OF_ACTS: &[(Act, &str)] = &[
    (Act::Delete, "deletion removal erasure cleanup teardown"),
    (
        Act::Write,
        "creation modification insertion registration editor uploader creator updater writer",
    ),
    (Act::Execute, "execution invocation runner executor evaluator interpreter deployment"),
    (Act::Pay, "payment purchase remittance pago pagamento paiement virement zahlung uberweisung"),
    (
        Act::Read,
        "retrieval lookup discovery inspection exploration finder searcher reader viewer exploration listing fetcher \
         overview analysis analytics inspector explorer enumeration",
    ),
    (
        Act::Compute,
        "calculation calculator validation validator conversion converter comparison analyzer estimator",
    ),
];

/// Verbs that may stand run together with their object.
pub(super) const RUN_TOGETHER: &str = "get set add put list read create delete update remove insert fetch search find \
     send execute run write edit modify retrieve upload download cancel approve upsert describe query exec destroy \
     drop purge clear erase transfer withdraw purchase refund charge pay buy sell deploy restart terminate invoke \
     rename replace publish revoke reset save copy move kill";
