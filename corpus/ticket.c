/* ticket.c - support tickets; the notation is in grammar.h. */
#include "grammar.h"

#define COUNT(table) (int32_t)(sizeof(table) / sizeof *(table))

static const corpus_value products[] = {
    {"mail", 16, 3, "sync no_login mail_team restart_sync reset_password",
     {"the mail app|the mail client", "mailbox|inbox"}},
    {"printer", 15, 2, "paper_jam offline hardware_team new_roller reinstall",
     {"the office printer|the laser printer", "print queue|paper tray"}},
    {"vpn", 12, 3, "disconnect slow network_team new_config replace_cable",
     {"the VPN client|the VPN", "secure tunnel|remote session"}},
    {"payroll", 1, 16, "wrong_total access_denied finance_team correct_record grant_role",
     {"the payroll system|payroll", "pay slip|salary run"}},
    {"laptop", 14, 3, "no_start overheat hardware_team new_battery new_fan",
     {"the laptop|the notebook computer", "battery|keyboard"}},
    {"webshop", 12, 3, "payment_fail slow web_team fix_gateway clear_cache",
     {"the web shop|the online shop", "shopping cart|checkout page"}},
    {"phone", 10, 4, "no_sound disconnect telecom_team replace_headset update_firmware",
     {"the desk phone|the phone system", "headset|voice line"}},
    {"scanner", 1, 14, "blurred offline warehouse_team update_firmware clean_lens",
     {"the barcode scanner|the warehouse scanner", "stock list|scan window"}},
    {"calendar", 10, 3, "sync duplicate mail_team restart_sync merge_entries",
     {"the shared calendar|the calendar", "meeting list|room booking"}},
    {"badge", 1, 14, "access_denied no_login security_team grant_role replace_card",
     {"the door badge|the badge reader", "entrance gate|side door"}},
    {"database", 8, 4, "slow duplicate data_team new_index merge_entries",
     {"the customer database|the database", "search form|client list"}},
    {"backup", 1, 12, "disk_full failed_job data_team more_space rerun_job",
     {"the backup server|the nightly backup", "restore point|archive folder"}},
    {"tablet", 9, 3, "no_start overheat hardware_team new_battery update_firmware",
     {"the tablet|the field tablet", "touch screen|charging port"}},
    {"wifi", 12, 3, "disconnect slow network_team move_access_point new_config",
     {"the wireless network|the Wi-Fi", "signal|guest network"}},
};

static const corpus_value faults[] = {
    {"sync", 8, 3, "", {"does not synchronise|no longer synchronises", "the sync fault"}},
    {"no_login", 10, 4, "", {"rejects every login|refuses a correct password", "the login fault"}},
    {"paper_jam", 7, 2, "", {"jams on every second page|keeps jamming", "the jam"}},
    {"offline", 7, 3, "", {"shows up as offline|goes offline for no reason", "the offline fault"}},
    {"disconnect", 9, 3, "", {"drops the connection every few minutes|keeps disconnecting",
                              "the dropped connection"}},
    {"slow", 10, 3, "", {"has become very slow|takes minutes to respond", "the slow response"}},
    {"wrong_total", 2, 9, "", {"shows the wrong total|adds up the amounts wrongly",
                               "the wrong total"}},
    {"access_denied", 3, 9, "", {"denies access|says that access is denied", "the denied access"}},
    {"no_start", 8, 3, "", {"does not start|stays black after it is switched on",
                            "the start-up fault"}},
    {"overheat", 6, 3, "", {"gets far too hot|overheats within minutes", "the overheating"}},
    {"payment_fail", 6, 3, "", {"declines valid cards|fails at the payment step",
                                "the failed payment"}},
    {"no_sound", 5, 3, "", {"has no sound|went silent", "the missing sound"}},
    {"blurred", 2, 8, "", {"reads blurred codes|gives a blurred picture", "the blurred image"}},
    {"duplicate", 6, 5, "", {"shows every entry twice|creates duplicate entries",
                             "the double entries"}},
    {"disk_full", 2, 8, "", {"reports a full disk|has run out of space", "the full disk"}},
    {"failed_job", 2, 8, "", {"stops halfway through the night|aborts its nightly run",
                              "the aborted run"}},
};

static const corpus_value priorities[] = {
    {"low", 12, 3, "week two_weeks", {"low|minor", "can wait|is only a small nuisance"}},
    {"normal", 16, 3, "three_days week", {"normal|routine", "slows the work a little"}},
    {"medium", 12, 4, "two_days three_days", {"medium|moderate", "affects one team"}},
    {"high", 7, 10, "one_day today", {"high|serious", "holds up a whole department"}},
    {"urgent", 3, 12, "today four_hours", {"urgent|very high", "keeps customers waiting"}},
    {"critical", 1, 12, "four_hours one_hour", {"critical|highest", "has stopped all work"}},
};

static const corpus_value fixes[] = {
    {"restart_sync", 8, 3, "", {"restarted the sync service|started the sync service again",
                                "a restart of the sync service"}},
    {"reset_password", 10, 3, "", {"reset the password|set a new password",
                                   "a password reset"}},
    {"new_roller", 5, 2, "", {"replaced the feed roller|fitted a new roller", "a new roller"}},
    {"reinstall", 8, 3, "", {"reinstalled the software|installed the driver again",
                             "a clean reinstall"}},
    {"new_config", 7, 3, "", {"loaded a new configuration|corrected the settings file",
                              "a new configuration"}},
    {"replace_cable", 5, 3, "", {"replaced the network cable|put in a new cable", "a new cable"}},
    {"correct_record", 2, 9, "", {"corrected the faulty record|repaired the wrong record",
                                  "a corrected record"}},
    {"grant_role", 2, 9, "", {"granted the missing role|added the right permissions",
                              "the right permissions"}},
    {"new_battery", 6, 3, "", {"swapped the battery|put in a fresh battery", "a fresh battery"}},
    {"new_fan", 4, 3, "", {"cleaned out the fan|replaced the fan", "a working fan"}},
    {"fix_gateway", 5, 3, "", {"repaired the payment gateway|renewed the gateway certificate",
                               "a renewed certificate"}},
    {"clear_cache", 7, 2, "", {"cleared the cache|emptied the cache", "an empty cache"}},
    {"replace_headset", 4, 3, "", {"handed out a new headset|exchanged the headset",
                                   "an exchanged headset"}},
    {"update_firmware", 5, 8, "", {"updated the firmware|installed the latest firmware",
                                   "a firmware update"}},
    {"clean_lens", 1, 7, "", {"cleaned the lens|wiped the dusty lens", "a clean lens"}},
    {"merge_entries", 4, 5, "", {"merged the double records|removed the extra copies",
                                 "a merged list"}},
    {"replace_card", 1, 8, "", {"issued a new card|printed a replacement card",
                                "a replacement card"}},
    {"new_index", 4, 4, "", {"rebuilt the search index|added a missing index",
                             "a rebuilt index"}},
    {"more_space", 1, 8, "", {"freed up storage|added more storage", "more storage"}},
    {"rerun_job", 1, 8, "", {"ran the job again by hand|repeated the job", "a repeated job"}},
};

static const corpus_value teams[] = {
    {"mail_team", 9, 3, "", {"the mail team|the messaging team"}},
    {"hardware_team", 10, 3, "", {"the hardware desk|the repair workshop"}},
    {"network_team", 9, 3, "", {"the network team|the network group"}},
    {"finance_team", 1, 9, "", {"the finance systems team|the finance desk"}},
    {"web_team", 8, 3, "", {"the web team|the web group"}},
    {"telecom_team", 5, 3, "", {"the telephony group|the telecom team"}},
    {"warehouse_team", 1, 8, "", {"the warehouse systems team|the logistics desk"}},
    {"security_team", 2, 9, "", {"the security office|the security team"}},
    {"data_team", 6, 6, "", {"the data team|the database group"}},
    {"service_desk", 10, 3, "", {"the service desk|the first-line desk"}},
};

static const corpus_value channels[] = {
    {"email", 14, 3, "", {"by email|in an email", "email"}},
    {"chat", 12, 3, "", {"in the support chat|by chat", "chat"}},
    {"call", 12, 4, "", {"by phone|in a phone call", "phone call"}},
    {"portal", 10, 3, "", {"through the web portal|on the self-service portal", "portal entry"}},
    {"walk_in", 2, 9, "", {"in person|at the help counter", "counter visit"}},
    {"letter", 1, 8, "", {"by letter|in a signed letter", "letter"}},
    {"manager", 2, 9, "", {"through a manager|through the team lead", "manager's note"}},
    {"monitor", 3, 8, "", {"through the status page|on the status page", "status report"}},
};

static const corpus_value deadlines[] = {
    {"one_hour", 1, 8, "", {"within one hour|in less than an hour", "one-hour"}},
    {"four_hours", 2, 9, "", {"within four hours|in under four hours", "four-hour"}},
    {"today", 5, 9, "", {"before the end of the day|the same day", "same-day"}},
    {"one_day", 7, 4, "", {"within one working day|by the next working day", "next-day"}},
    {"two_days", 9, 3, "", {"within two days|in two working days", "two-day"}},
    {"three_days", 9, 2, "", {"within three days|in three working days", "three-day"}},
    {"week", 10, 2, "", {"within a week|in the course of the week", "one-week"}},
    {"two_weeks", 6, 3, "", {"within two weeks|in a fortnight", "two-week"}},
};

static const corpus_attribute attributes[] = {
    {"prod", {"name", "part"}, products, COUNT(products)},
    {"fault", {"does", "name"}, faults, COUNT(faults)},
    {"prio", {"name", "why"}, priorities, COUNT(priorities)},
    {"fix", {"did", "name"}, fixes, COUNT(fixes)},
    {"team", {"name"}, teams, COUNT(teams)},
    {"chan", {"how", "name"}, channels, COUNT(channels)},
    {"due", {"when", "kind"}, deadlines, COUNT(deadlines)},
};

static const corpus_rule rules[] = {
    {"doc", "{title}\n{s.open} {s.fault} [{s.part}] {s.prio} {s.team} {s.try} {s.fix} {s.due} "
            "[{s.sum}] {s.close}"},
    {"doc", "{title}\n{s.open} {s.fault} {s.prio} {s.due} {s.team} [{s.part}] [{s.try}] {s.fix} "
            "[{s.test}] {s.sum} {s.close}"},
    {"doc", "{title}\n{s.open} ({s.prio} {s.fault}|{s.fault} {s.prio}) {s.part} {s.due} {s.team} "
            "{s.fix} {s.test} [{s.sum}] {s.close}"},
    {"title", "Support ticket {1000-9999}: {prod.name} {fault.does}"},
    {"title", "Ticket {1000-9999}, priority {prio.name}: {prod.name} {fault.does}"},
    {"title", "Support case {1000-9999}: {fault.name} of {prod.name}"},
    {"title", "Problem report: {prod.name} {fault.does}"},
    {"title", "Ticket {1000-9999} from {company}: {prod.name} {fault.does}"},
    {"title", "Help request: {prod.name} {fault.does}"},

    {"s.open", "{first} {surname} of {company} reported {chan.how} that {prod.name} {fault.does}."},
    {"s.open", "On {date}, {first} {surname} told us {chan.how} that {prod.name} {fault.does}."},
    {"s.open", "{company} contacted us {chan.how} about {fault.name} of {prod.name}."},
    {"s.open", "This case was opened {chan.how} by {first} {surname}, who works for {company}."},
    {"s.open", "We (heard|learned) {chan.how} that {prod.name} at {company} {fault.does}."},
    {"s.open", "A (user|member of staff) at {company} wrote to us {chan.how}[ on {weekday}]: "
               "{prod.name} {fault.does}."},
    {"s.open", "The request of {first} {surname} reached us {chan.how} on {date} at {time}."},
    {"s.open", "Customer {first} {surname}, {company}, asked for help {chan.how} because {prod.name} "
               "{fault.does}."},

    {"s.fault", "Since {weekday}, {prod.name} {fault.does}[, and nobody knows why]."},
    {"s.fault", "The user says that {prod.name} {fault.does} (every morning|after each update|most "
                "of the time)."},
    {"s.fault", "According to the {chan.name}, {prod.name} {fault.does}."},
    {"s.fault", "The problem began on {date}: {prod.name} {fault.does}."},
    {"s.fault", "After the update of {date}, {prod.name} {fault.does}."},
    {"s.fault", "As we know from the {chan.name}, {prod.name} {fault.does}, although it worked well "
                "before."},
    {"s.fault", "What the user sees is simple: {prod.name} {fault.does}."},
    {"s.fault", "About {2-60} people in {town} notice that {prod.name} {fault.does}."},

    {"s.part", "The {prod.part} is affected as well[, according to a colleague]."},
    {"s.part", "Nothing is wrong with the {prod.part} itself(|, as far as we can tell)."},
    {"s.part", "A picture of the {prod.part} has been added to the ticket."},
    {"s.part", "Error {100-999} appears next to the {prod.part}."},
    {"s.part", "The user has already checked the {prod.part}(| twice), without success."},
    {"s.part", "We asked for more details about the {prod.part} and got them {chan.how}."},
    {"s.part", "The log of {prod.name} mentions the {prod.part} more than once."},

    {"s.prio", "The priority is {prio.name}, because the problem {prio.why}."},
    {"s.prio", "We set the priority to {prio.name}, since {fault.name} {prio.why}."},
    {"s.prio", "As the fault {prio.why}, the priority was set to {prio.name}."},
    {"s.prio", "Priority: {prio.name}, as this {prio.why}."},
    {"s.prio", "The issue {prio.why}, so we rated it as {prio.name}."},
    {"s.prio", "{first} {surname} says that it {prio.why}; we agreed on {prio.name} priority."},
    {"s.prio", "Because it {prio.why}, the case was marked as {prio.name}."},

    {"s.team", "{^team.name} took over the case[ at {time}]."},
    {"s.team", "We passed the case to {team.name}, where {surname2} is in charge."},
    {"s.team", "The case belongs to {team.name}, who look after {prod.name}."},
    {"s.team", "It was assigned to {team.name}[ on {date}]."},
    {"s.team", "{first2} {surname2} from {team.name} (called the user|examined the {prod.part}|went "
               "to see {prod.name})."},
    {"s.team", "Since {fault.name} needs an expert, {team.name} (was|were) asked to help."},
    {"s.team", "Our colleagues in {team.name} have seen {fault.name} before."},
    {"s.team", "Responsible for {prod.name}: {team.name}."},

    {"s.try", "A first attempt, a simple restart, did not help."},
    {"s.try", "At first, {first2} {surname2} suspected the {prod.part}, but that was not the cause."},
    {"s.try", "We could reproduce {fault.name} (on a second device|in our test room|within {2-30} "
              "minutes)."},
    {"s.try", "The engineers checked the {prod.part} and found (nothing unusual|an old setting)."},
    {"s.try", "Switching {prod.name} off and on again made no difference."},
    {"s.try", "A remote session of {10-50} minutes did not explain {fault.name}."},

    {"s.fix", "To solve the problem, {team.name} {fix.did}."},
    {"s.fix", "In the end, we {fix.did}, and {prod.name} worked again."},
    {"s.fix", "{first2} {surname2} {fix.did}(| on {date}| at {time})."},
    {"s.fix", "What helped was {fix.name}[, which took {5-55} minutes]."},
    {"s.fix", "After {fix.name}, {fault.name} was gone."},
    {"s.fix", "{^team.name} {fix.did}, which removed {fault.name}."},
    {"s.fix", "The solution was {fix.name}: an engineer {fix.did}."},
    {"s.fix", "On {weekday}, an engineer {fix.did} and closed the gap."},

    {"s.due", "The customer expects an answer {due.when}."},
    {"s.due", "We promised to solve it {due.when}."},
    {"s.due", "A solution {due.when} is (what the contract demands|part of the contract)."},
    {"s.due", "The {due.kind} target applies to this case."},
    {"s.due", "Under the {due.kind} rule, the case must be solved {due.when}."},
    {"s.due", "With {prio.name} priority, we have to respond {due.when}."},
    {"s.due", "{company} has a {due.kind} service contract, so work has to finish {due.when}."},
    {"s.due", "Please make sure that {prod.name} works again {due.when}."},

    {"s.test", "Since then, {prod.name} has worked without trouble for {2-20} days."},
    {"s.test", "The user tested the {prod.part} and confirmed {chan.how} that all is well."},
    {"s.test", "Thanks to {fix.name}, {prod.name} works as it should."},
    {"s.test", "We tested {prod.name} {count} times after {fix.name}."},
    {"s.test", "{first} {surname} thanked {team.name} {chan.how}."},
    {"s.test", "A check of the {prod.part} after {fix.name} showed no further errors."},

    {"s.sum", "In summary: {fault.name}, solved by {fix.name}."},
    {"s.sum", "Cause and cure were recorded: {fault.name} of {prod.name}, and {fix.name}."},
    {"s.sum", "The {due.kind} target was met, thanks to {team.name}."},
    {"s.sum", "If {fault.name} returns, {fix.name} should be tried first."},
    {"s.sum", "The {prio.name} priority and the {due.kind} target were both justified."},
    {"s.sum", "We have added {fix.name} to the notes on {prod.name}."},
    {"s.sum", "{^team.name} will watch {prod.name} for {count} more days."},

    {"s.close", "The ticket was closed on {date}."},
    {"s.close", "Status: closed by {team.name}."},
    {"s.close", "The customer was informed {chan.how}, and the ticket is closed."},
    {"s.close", "We closed the case {due.when}, as promised."},
    {"s.close", "Status: solved after {2-40} hours."},
    {"s.close", "{first} {surname} agreed {chan.how} that the ticket can be closed."},
    {"s.close", "The case stays open until {company} confirms that {prod.name} works."},
    {"s.close", "Final note by {first2} {surname2}, {team.name}."},
};

const corpus_domain corpus_ticket = {
    "ticket",
    {"Write a support ticket.", "Please write a support ticket of a help desk.",
     "Write a ticket about a technical problem and its solution.",
     "Produce a fictional ticket of an IT help desk.",
     "Write the record of a support case."},
    5, attributes, COUNT(attributes), rules, COUNT(rules)};
