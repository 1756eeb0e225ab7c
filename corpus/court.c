/* court.c - procedures of court cases; the notation is in grammar.h. */
#include "corpus/grammar.h"

#define COUNT(table) (int32_t)(sizeof(table) / sizeof *(table))

static const corpus_value cases[] = {
    {"eviction", 16, 3, "possession county lease trial_hearing landlord",
     {"eviction|the eviction of a tenant", "the tenant stopped paying rent|the rent was not paid",
      "a landlord|the landlord", "the flat"}},
    {"debt", 16, 3, "payment county bank_records mediation lender",
     {"an unpaid debt|money owed", "a loan was never repaid|the invoice was never paid",
      "a lender|the lender", "the loan"}},
    {"injury", 14, 3, "damages high medical_report trial_hearing driver",
     {"personal injury|an injury on the road", "a car ran a red light|two cars collided",
      "an injured cyclist|the injured person", "the accident"}},
    {"custody", 10, 4, "custody_order family social_report mediation parent",
     {"child custody|the custody of two children",
      "the parents separated|the parents could not agree on visits",
      "a parent|the parent", "the visits"}},
    {"divorce", 12, 3, "asset_split family bank_records settlement_talk spouse",
     {"divorce|the end of a marriage", "the couple separated|the marriage broke down",
      "a spouse|the spouse", "the family home"}},
    {"defamation", 1, 14, "apology high screenshots preliminary newspaper",
     {"defamation|libel", "a false story was printed|an article contained false claims",
      "a teacher|the person in the article", "the article"}},
    {"boundary", 8, 3, "fence_removal county land_survey site_visit neighbour",
     {"a boundary dispute|a dispute over a boundary",
      "a fence was built in the wrong place|a wall crossed the line",
      "a landowner|the owner of the plot", "the fence"}},
    {"wages", 10, 4, "back_pay labour pay_slips mediation employer",
     {"unpaid wages|missing wages", "overtime was not paid|three months of pay were withheld",
      "a worker|the worker", "the overtime"}},
    {"probate", 1, 14, "will_reading probate_court handwriting preliminary heir",
     {"a contested will|a dispute over a will", "two wills were found|the will was changed late",
      "a relative|the relative", "the estate"}},
    {"negligence", 1, 14, "damages high medical_report expert_hearing clinic",
     {"medical negligence|a medical error",
      "an operation went wrong|a diagnosis came too late", "a patient|the patient",
      "the operation"}},
    {"refund", 12, 3, "repayment small_claims receipts mediation shop",
     {"a refund|faulty goods", "the goods were faulty|the shop refused to take goods back",
      "a buyer|the buyer", "the purchase"}},
    {"patent", 1, 12, "injunction commercial expert_report expert_hearing rival",
     {"patent infringement|the copying of a patent", "a machine was copied|a design was imitated",
      "an inventor|the inventor", "the machine"}},
    {"noise", 8, 5, "injunction county sound_log site_visit neighbour",
     {"a noise complaint|noise at night", "loud music was played at night|a workshop ran all "
      "night", "a resident|the resident", "the noise"}},
    {"dismissal", 10, 4, "reinstatement labour pay_slips settlement_talk employer",
     {"unfair dismissal|wrongful dismissal",
      "an employee was dismissed without notice|a contract was ended without warning",
      "a former employee|the dismissed employee", "the dismissal"}},
};

static const corpus_value reliefs[] = {
    {"possession", 9, 2, "", {"possession of the property|the return of the property"}},
    {"payment", 10, 3, "", {"payment of the full sum|payment of the sum owed"}},
    {"damages", 10, 4, "", {"damages|compensation for the harm"}},
    {"custody_order", 7, 3, "", {"shared custody|an order on custody"}},
    {"asset_split", 7, 3, "", {"an equal division of assets|a fair division of assets"}},
    {"apology", 1, 8, "", {"a public apology|a printed apology"}},
    {"fence_removal", 5, 3, "", {"removal of the structure|a correction of the line"}},
    {"back_pay", 7, 3, "", {"back pay|the missing pay with interest"}},
    {"will_reading", 1, 8, "", {"a ruling on the last will|a decision on the true will"}},
    {"repayment", 8, 3, "", {"the return of the price|repayment of the price"}},
    {"injunction", 3, 9, "", {"an injunction|an order to stop"}},
    {"reinstatement", 6, 4, "", {"reinstatement|a return to the old post"}},
};

static const corpus_value courts[] = {
    {"county", 14, 3, "", {"County Court", "the county judge"}},
    {"high", 6, 9, "", {"High Court", "the High Court judge"}},
    {"family", 10, 4, "", {"Family Court", "the family judge"}},
    {"labour", 8, 5, "", {"Labour Court", "the labour judge"}},
    {"small_claims", 10, 2, "", {"Small Claims Court", "the small claims judge"}},
    {"probate_court", 1, 9, "", {"Probate Court", "the probate judge"}},
    {"commercial", 2, 9, "", {"Commercial Court", "the commercial judge"}},
    {"district", 10, 3, "", {"District Court", "the district judge"}},
};

static const corpus_value evidence[] = {
    {"lease", 7, 2, "", {"the signed lease|a copy of the lease"}},
    {"bank_records", 9, 3, "", {"bank records|several bank statements"}},
    {"medical_report", 8, 5, "", {"a medical report|the report of a doctor"}},
    {"social_report", 5, 3, "", {"the report of a social worker|a social report"}},
    {"screenshots", 1, 9, "", {"dated screenshots|screenshots of the page"}},
    {"land_survey", 5, 3, "", {"a land survey|the map of a surveyor"}},
    {"pay_slips", 8, 4, "", {"pay slips|a set of pay slips"}},
    {"handwriting", 1, 9, "", {"a handwriting analysis|the opinion of a handwriting expert"}},
    {"receipts", 8, 3, "", {"receipts|the original receipts"}},
    {"expert_report", 2, 9, "", {"a technical report|the report of an engineer"}},
    {"sound_log", 3, 7, "", {"a log of sound levels|sound measurements"}},
    {"witnesses", 10, 3, "", {"the statements of two witnesses|two witness statements"}},
    {"letters", 8, 4, "", {"a bundle of letters|letters between the parties"}},
};

static const corpus_value hearings[] = {
    {"trial_hearing", 11, 3, "", {"a full trial|a trial", "trial"}},
    {"mediation", 11, 3, "", {"a mediation session|a round of mediation", "mediation"}},
    {"settlement_talk", 8, 4, "", {"a settlement conference|a round of settlement talks",
                                   "settlement meeting"}},
    {"preliminary", 6, 8, "", {"a preliminary hearing|a first hearing", "preliminary hearing"}},
    {"site_visit", 4, 7, "", {"a site visit|an inspection of the site", "site visit"}},
    {"expert_hearing", 1, 9, "", {"a hearing of experts|an expert hearing", "expert hearing"}},
    {"costs_hearing", 3, 8, "", {"a hearing on costs|a costs hearing", "costs hearing"}},
    {"appeal", 2, 8, "", {"an appeal hearing|a hearing on appeal", "appeal"}},
    {"case_conference", 9, 3, "", {"a case conference|a planning conference", "case conference"}},
};

static const corpus_value orders[] = {
    {"disclose", 9, 3, "", {"to exchange all documents|to hand over all documents",
                            "disclosure"}},
    {"deposit", 2, 9, "", {"to pay a deposit into court|to lodge a deposit", "the deposit"}},
    {"statement", 9, 3, "", {"to file written statements|to submit written statements",
                             "the written statements"}},
    {"expert", 4, 8, "", {"to appoint a joint expert|to agree on one expert",
                          "the joint expert"}},
    {"silence", 1, 9, "", {"to stay silent in public|to keep away from the press",
                           "the ban on comments"}},
    {"list", 8, 3, "", {"to name their witnesses|to give the names of witnesses",
                        "the list of witnesses"}},
    {"offer", 7, 4, "", {"to make a written offer|to exchange written offers",
                         "the written offers"}},
    {"preserve", 2, 9, "", {"to preserve all evidence|to keep all evidence safe",
                            "the safety of the evidence"}},
    {"translate", 1, 8, "", {"to translate the papers|to provide translations",
                             "the translations"}},
};

static const corpus_value limits[] = {
    {"seven", 3, 9, "", {"within 7 days|in one week", "seven-day"}},
    {"ten", 3, 9, "", {"within 10 days|in ten days", "ten-day"}},
    {"fourteen", 10, 3, "", {"within 14 days|in two weeks", "two-week"}},
    {"twentyone", 8, 3, "", {"within 21 days|in three weeks", "three-week"}},
    {"thirty", 10, 3, "", {"within 30 days|in one month", "one-month"}},
    {"sixty", 5, 4, "", {"within 60 days|in two months", "two-month"}},
    {"ninety", 2, 8, "", {"within 90 days|in three months", "three-month"}},
    {"year", 1, 7, "", {"within half a year|in six months", "six-month"}},
};

static const corpus_attribute attributes[] = {
    {"case", {"name", "fact", "who", "thing"}, cases, COUNT(cases)},
    {"relief", {"name"}, reliefs, COUNT(reliefs)},
    {"court", {"name", "judge"}, courts, COUNT(courts)},
    {"proof", {"name"}, evidence, COUNT(evidence)},
    {"next", {"name", "short"}, hearings, COUNT(hearings)},
    {"order", {"rule", "name"}, orders, COUNT(orders)},
    {"limit", {"when", "kind"}, limits, COUNT(limits)},
};

static const corpus_rule rules[] = {
    {"doc", "{title}\n{s.open} {s.fact} {s.relief} {s.proof} [{s.reply}] {s.order} {s.next} "
            "[{s.costs}] {s.sum} {s.close}"},
    {"doc", "{title}\n{s.open} {s.relief} {s.fact} [{s.reply}] {s.judge} {s.order} {s.proof} "
            "{s.next} [{s.sum}] {s.close}"},
    {"doc", "{title}\n{s.open} ({s.fact} {s.proof}|{s.proof} {s.fact}) {s.relief} {s.reply} "
            "{s.judge} {s.order} [{s.costs}] {s.next} [{s.sum}] {s.close}"},

    {"title", "{surname} v {surname2}, {town} {court.name}: {case.name}"},
    {"title", "Case {100-999}, {town} {court.name}: {case.name}"},
    {"title", "{court.name} of {town}: {surname} v {surname2}, {case.name}"},
    {"title", "Record of the {court.name}, case {100-999}: {case.name}"},
    {"title", "In the {court.name} of {town}: {case.name}"},
    {"title", "Procedure in {surname} v {surname2}: {case.name}"},
    {"title", "{town} {court.name}, {date}: {case.name}"},
    {"title", "Summary of {surname} v {surname2}, {court.name}: {case.name}"},
    {"title", "Directions in {surname} v {surname2}: {case.name}"},
    {"title", "Notice of the {town} {court.name} about {case.name}"},

    {"s.open", "This case before the {court.name} of {town} concerns {case.name}."},
    {"s.open", "On {date}, {first} {surname} brought a claim against {first2} {surname2} before "
               "the {court.name}[ of {town}]."},
    {"s.open", "The {court.name} of {town} is hearing a case about {case.name}."},
    {"s.open", "{first} {surname} filed a claim about {case.name} with the {court.name} on "
               "{date}."},
    {"s.open", "The claimant, {first} {surname}, is {case.who} in a case about {case.name}."},
    {"s.open", "This matter before the {court.name} is about {case.name} and was opened on "
               "{date}."},
    {"s.open", "The parties, {surname} and {surname2}, appeared before the {court.name} because "
               "of {case.name}."},
    {"s.open", "In this matter of {case.name}, the {court.name} heard both sides on {date}."},
    {"s.open", "Before the {court.name} of {town}, {first} {surname} and {first2} {surname2} "
               "argue about {case.name}."},
    {"s.open", "This record sums up what the {court.name} has done so far in a case of "
               "{case.name}."},
    {"s.open", "The {court.name} opened a case of {case.name} on {date}, after a claim by "
               "{first} {surname}."},
    {"s.open", "{first} {surname} and {first2} {surname2} are the parties in this case of "
               "{case.name} before the {court.name}."},
    {"s.open", "In {month}, the {court.name} of {town} received a claim that deals with "
               "{case.name}."},
    {"s.open", "Some {2-9} months ago, {first} {surname}, {case.who}, came to the {court.name} "
               "because of {case.name}."},
    {"s.open", "The matter between {surname} and {surname2} is one of {case.name}, and it is "
               "before the {court.name}."},

    {"s.fact", "According to the claim, {case.fact}."},
    {"s.fact", "The claim, filed in {month}, says that {case.fact}."},
    {"s.fact", "The facts are (simple|not in dispute): {case.fact}."},
    {"s.fact", "It is said that {case.fact}, which the other side denies."},
    {"s.fact", "The file states that {case.fact}[, and that talks about {case.thing} failed]."},
    {"s.fact", "In {month}, {case.fact}, and the two sides could not agree about {case.thing}."},
    {"s.fact", "{surname} claims that {case.fact}."},
    {"s.fact", "The dispute about {case.thing} began when {case.fact}."},
    {"s.fact", "In the words of the claim, {case.fact}."},
    {"s.fact", "{first} {surname} told the court that {case.fact}."},
    {"s.fact", "Both sides agree that {case.fact}, but not about what follows."},
    {"s.fact", "The court took note that {case.fact}(| before {date}| in {month})."},
    {"s.fact", "The story of {case.thing} is short: {case.fact}."},
    {"s.fact", "After {case.fact}, {first} {surname} wrote {count} letters before going to court."},
    {"s.fact", "Nobody denies that {case.fact}."},

    {"s.relief", "The claimant asks for {relief.name}."},
    {"s.relief", "{surname} seeks {relief.name}( and the costs of the case|, and wants a quick "
                 "decision)."},
    {"s.relief", "What the claimant wants is {relief.name}."},
    {"s.relief", "The relief sought is {relief.name}, (as set out in|following) page {2-40} of "
                 "the claim."},
    {"s.relief", "Counsel for {surname}, {first3} {surname3}, asked the court to order "
                 "{relief.name}."},
    {"s.relief", "For {case.who}, the main goal is {relief.name}."},
    {"s.relief", "The claim is for {relief.name}[, and nothing else]."},
    {"s.relief", "The court is asked to grant {relief.name}."},
    {"s.relief", "In the claim, {first} {surname} asks for {relief.name}(| and for costs)."},
    {"s.relief", "Nothing less than {relief.name} will satisfy the claimant."},
    {"s.relief", "The first request of the claimant is {relief.name}; the second is costs."},
    {"s.relief", "With regard to {case.thing}, the claim seeks {relief.name}."},
    {"s.relief", "A claim for {relief.name} was filed on {date}."},
    {"s.relief", "As {case.who}, {surname} hopes for {relief.name}."},

    {"s.proof", "The main evidence consists of {proof.name}."},
    {"s.proof", "To support the claim, {surname} produced {proof.name}."},
    {"s.proof", "The court received {proof.name} (as evidence|on {date})."},
    {"s.proof", "Both sides rely on {proof.name}[, though they read the evidence differently]."},
    {"s.proof", "As exhibit {2-30}, {proof.name} reached {court.judge}."},
    {"s.proof", "As proof about {case.thing}, the claimant offers {proof.name}."},
    {"s.proof", "The claimant's lawyer pointed to {proof.name}."},
    {"s.proof", "{^court.judge} studied {proof.name} (with care|at length)."},
    {"s.proof", "The claim rests on {proof.name}."},
    {"s.proof", "Among the papers before {court.judge}, one finds {proof.name}."},
    {"s.proof", "On {date}, {surname} filed {proof.name}."},
    {"s.proof", "The strongest point of the claim is {proof.name}, (said counsel|according to "
                "counsel)."},
    {"s.proof", "To show what happened with {case.thing}, {surname} relied on {proof.name}."},
    {"s.proof", "The file, {20-400} pages long, also contains {proof.name}."},
    {"s.proof", "{^court.judge} asked for {proof.name}, and the court received this evidence on "
                "{date}."},

    {"s.reply", "The defence denies the claim and doubts the value of {proof.name}."},
    {"s.reply", "{surname2} replied that {relief.name} would be unfair."},
    {"s.reply", "In reply, the defendant says that the account of {case.thing} is wrong."},
    {"s.reply", "Counsel for {surname2} asked for more time to study {proof.name}."},
    {"s.reply", "The defendant offered to settle the question of {case.thing}, without success."},
    {"s.reply", "The other side accepts the facts but opposes {relief.name}."},
    {"s.reply", "{first2} {surname2} does not accept {relief.name}."},
    {"s.reply", "The defendant asked the court to reject the claim for {relief.name}."},
    {"s.reply", "Counsel for the defendant called {proof.name} (weak|of little value|hard to "
                "read)."},
    {"s.reply", "On {date}, {surname2} filed a defence of {3-40} pages about {case.thing}."},
    {"s.reply", "The defendant wants to call {count} witnesses about {case.thing}."},

    {"s.judge", "{^court.judge}, {first4} {surname4}, heard the parties for {20-90} minutes."},
    {"s.judge", "After reading the file, {court.judge} found that the claim of {case.who} can "
                "proceed."},
    {"s.judge", "{^court.judge} refused to decide on {relief.name} at once."},
    {"s.judge", "For now, {court.judge} has not decided about {case.thing}."},
    {"s.judge", "{^court.judge} reminded both sides that a claim for {relief.name} needs clear "
                "proof."},
    {"s.judge", "In the view of {court.judge}, the question of {case.thing} is still open."},
    {"s.judge", "{^court.judge} asked {count} questions about {case.thing}."},
    {"s.judge", "Before any ruling on {relief.name}, {court.judge} wants to hear more."},
    {"s.judge", "{first4} {surname4}, {court.judge}, explained the next steps to the parties."},
    {"s.judge", "{^court.judge} said that {case.thing} will be looked at in detail."},
    {"s.judge", "The hearing before {court.judge} lasted {20-90} minutes."},

    {"s.order", "Both parties were ordered {order.rule} {limit.when}."},
    {"s.order", "{^court.judge} told the parties {order.rule} {limit.when}."},
    {"s.order", "The court set a {limit.kind} deadline and ordered both sides {order.rule}."},
    {"s.order", "{^limit.when}, the parties have {order.rule}."},
    {"s.order", "The next step is for both sides {order.rule}, and they must do so {limit.when}."},
    {"s.order", "By order of {court.judge}, the parties have {order.rule} {limit.when}."},
    {"s.order", "The {limit.kind} period gives each side time {order.rule}."},
    {"s.order", "The directions are clear: the parties have {order.rule} {limit.when}."},
    {"s.order", "By a {limit.kind} order, the parties were told {order.rule}."},
    {"s.order", "{surname} and {surname2} were told {order.rule}, and the {limit.kind} limit is "
                "strict."},
    {"s.order", "A {limit.kind} limit was set for both sides {order.rule}."},
    {"s.order", "The parties agreed {order.rule} {limit.when}."},
    {"s.order", "As a first step, {court.judge} asked both sides {order.rule} {limit.when}."},
    {"s.order", "There is a duty {order.rule}, and it must be met {limit.when}."},

    {"s.next", "After that, there will be {next.name} on {date}."},
    {"s.next", "The case continues with {next.name} on {weekday}, {date}, at {time}."},
    {"s.next", "{^next.name} will follow on {date}[ in room {2-30}]."},
    {"s.next", "The next date is {date}, when the court will hold {next.name}."},
    {"s.next", "If all goes well with {order.name}, {next.name} will take place on {date}."},
    {"s.next", "The parties will then meet for {next.name} in room {2-30} of the {court.name}."},
    {"s.next", "The court has listed the case for {next.name} at {time} on {date}."},
    {"s.next", "The next step in court is {next.name}, on {date}."},
    {"s.next", "{^court.judge} fixed {next.name} for {date} at {time}."},
    {"s.next", "The court will then hold {next.name}, probably in {month}."},
    {"s.next", "What follows is {next.name} before {court.judge}."},
    {"s.next", "On {weekday}, {date}, the parties will attend {next.name}."},
    {"s.next", "If nothing changes, there will be {next.name} in {month}."},
    {"s.next", "Both sides were invited to {next.name} at {time} on {date}."},

    {"s.costs", "A decision on costs will be made later, after the {next.short}."},
    {"s.costs", "The fee for the {next.short} is {50-900} pounds."},
    {"s.costs", "Whoever misses the {next.short} may have to pay the costs."},
    {"s.costs", "The costs so far are {2-9},{100-999} pounds, mostly for {proof.name}."},
    {"s.costs", "The clerk noted that the {limit.kind} limit will not be extended."},
    {"s.costs", "Each side pays its own lawyer until the {next.short}."},
    {"s.costs", "An interpreter will be present at the {next.short}."},
    {"s.costs", "The {next.short} is expected to take {count} hours."},
    {"s.costs", "The parties may agree on costs before the {next.short}."},
    {"s.costs", "The cost of {proof.name} is shared for the time being."},

    {"s.sum", "Until the {next.short}, {order.name} and the {limit.kind} limit come first."},
    {"s.sum", "In short, the question of {relief.name} depends on {proof.name}."},
    {"s.sum", "If the {limit.kind} limit passes without {order.name}, the claim may fail."},
    {"s.sum", "The outcome of the {next.short} will decide about {relief.name}."},
    {"s.sum", "The {limit.kind} deadline for {order.name} was noted in the file."},
    {"s.sum", "Without {order.name}, the {next.short} cannot take place."},
    {"s.sum", "Everything about {case.thing} now turns on {proof.name} and {order.name}."},
    {"s.sum", "If the parties respect the {limit.kind} limit, the {next.short} can go ahead."},
    {"s.sum", "The parties now have to deal with {order.name}, and then with the {next.short}."},
    {"s.sum", "The {next.short} will show whether {relief.name} can be granted."},
    {"s.sum", "Much depends on {proof.name}, on {order.name} and on the {limit.kind} limit."},
    {"s.sum", "Of the open points, {order.name} comes first and the {next.short} second."},
    {"s.sum", "The question of {case.thing} cannot be solved without {proof.name} and the "
              "{next.short}."},

    {"s.close", "The record was signed by {court.judge}[ on {date}]."},
    {"s.close", "The clerk of the {court.name} sent this record to both parties."},
    {"s.close", "The hearing ended at {time}."},
    {"s.close", "No party asked to change the date of the {next.short}."},
    {"s.close", "Either side may apply to the {court.name} to change these directions."},
    {"s.close", "The case of {surname} v {surname2} remains open until the {next.short}."},
    {"s.close", "This record was prepared by the clerk, {first3} {surname3}."},
    {"s.close", "The parties were told to be ready for the {next.short}."},
    {"s.close", "That concluded the business of the day."},
    {"s.close", "The court thanked the parties and rose at {time}."},
    {"s.close", "The file goes back to {court.judge} after the {next.short}."},
    {"s.close", "A copy of these directions went to counsel for both sides."},
    {"s.close", "The parties have been told that the {limit.kind} limit will not be changed."},
    {"s.close", "The date of the {next.short} will be published by the {court.name}."},
    {"s.close", "So ordered by {court.judge}, {town}, {date}."},
};

const corpus_domain corpus_court = {
    "court",
    {"Write the procedure of a court case.", "Please write a record of a court procedure.",
     "Write what happened so far in a court case and what comes next.",
     "Produce a fictional court record.", "Write a summary of the procedure before a court."},
    5, attributes, COUNT(attributes), rules, COUNT(rules)};
