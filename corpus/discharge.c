/* discharge.c - hospital discharge instructions; the notation is in grammar.h. */
#include "corpus/grammar.h"

#define COUNT(table) (int32_t)(sizeof(table) / sizeof *(table))

static const corpus_value diagnoses[] = {
    {"pneumonia", 20, 4, "amoxicillin doxycycline chest_clinic rest fluids",
     {"pneumonia|a lung infection|a chest infection",
      "a deep cough and a high fever|fever, chills and a heavy cough",
      "you cough up blood|your breathing gets worse|the cough keeps you awake again",
      "your lungs|your chest"}},
    {"asthma", 18, 3, "inhaler prednisone chest_clinic smoke balanced",
     {"asthma|an asthma attack", "wheezing and a tight chest|a severe attack of wheezing",
      "you wheeze even at rest|your inhaler stops helping", "your airways|your windpipe"}},
    {"heart_failure", 16, 4, "furosemide bisoprolol heart_clinic walking low_salt",
     {"heart failure|weakness of the heart",
      "swollen legs and shortness of breath|fluid on the lungs",
      "you gain two kilos in three days|your legs swell again|you need extra pillows to sleep",
      "your heart|your circulation"}},
    {"hip_fracture", 12, 3, "paracetamol heparin bone_clinic crutches calcium",
     {"a broken hip|a hip fracture", "severe hip pain after a fall|a leg that you could not move",
      "the leg looks shorter or turns outward|you fall again", "your hip|the hip bone"}},
    {"appendicitis", 14, 2, "ibuprofen amoxicillin surgeon lifting soft",
     {"appendicitis|an inflamed appendix",
      "sharp pain in the lower belly|pain on the right side of the belly",
      "the wound turns red or leaks pus|your belly becomes hard", "your belly|the wound"}},
    {"diabetes", 14, 14, "metformin insulin diabetes_nurse walking low_sugar",
     {"a diabetic crisis|very high blood sugar",
      "great thirst and blurred vision|thirst and constant tiredness",
      "your blood sugar stays above 15|you feel shaky and sweaty",
      "your blood sugar|your sugar levels"}},
    {"stroke", 10, 3, "clopidogrel bisoprolol neurology driving low_salt",
     {"a stroke|a small stroke", "slurred speech and a weak arm|sudden weakness on one side",
      "your face droops|an arm or a leg feels numb|you cannot find your words",
      "your brain|the affected side"}},
    {"gallstones", 10, 3, "ibuprofen paracetamol surgeon lifting low_fat",
     {"gallstones|a gallbladder attack", "cramps under the right ribs|pain after a fatty meal",
      "your skin or eyes turn yellow|your stools become pale", "your gallbladder|your bile ducts"}},
    {"kidney_infection", 1, 16, "ciprofloxacin kidney_clinic rest fluids",
     {"a kidney infection|an infected kidney", "back pain and burning urine|fever and flank pain",
      "there is blood in your urine|you pass hardly any urine", "your kidneys|your urinary tract"}},
    {"concussion", 12, 3, "paracetamol neurology screens balanced",
     {"a concussion|a mild head injury",
      "a headache after a blow to the head|dizziness after a bump",
      "your headache becomes severe|you vomit more than once|you feel confused",
      "your head|your memory"}},
    {"burn", 1, 18, "silver_cream burn_unit sun protein",
     {"a burn|a scald", "a burn from boiling water|blisters from hot oil",
      "the blisters fill with pus|the burned skin turns white or black",
      "your skin|the burned skin"}},
    {"allergy", 1, 14, "antihistamine prednisone allergy_clinic smoke nut_free",
     {"a severe allergic reaction|an allergic reaction", "a rash and swollen lips|hives all over",
      "your lips or tongue swell|the rash comes back", "your immune system|your body"}},
    {"sepsis", 1, 16, "ciprofloxacin doxycycline family_doctor rest protein",
     {"sepsis|a blood infection", "shivering and confusion|a racing pulse and chills",
      "you start to shiver|your pulse races at rest", "your whole body|your strength"}},
    {"back_pain", 12, 3, "ibuprofen physio_visit lifting balanced",
     {"lower back pain|a slipped disc", "pain that shot down one leg|a sudden pain in the back",
      "you lose control of your bladder|a foot goes limp", "your back|your spine"}},
};

static const corpus_value medicines[] = {
    {"amoxicillin", 10, 3, "", {"amoxicillin|the antibiotic amoxicillin", "fights the bacteria"}},
    {"doxycycline", 5, 4, "", {"doxycycline|the antibiotic doxycycline", "clears the germs"}},
    {"inhaler", 8, 2, "", {"salbutamol|the blue inhaler", "opens the airways"}},
    {"prednisone", 6, 5, "", {"prednisone|the steroid prednisone", "calms the swelling"}},
    {"furosemide", 7, 2, "", {"furosemide|the water pill furosemide", "drains extra fluid"}},
    {"bisoprolol", 7, 2, "", {"bisoprolol|the heart pill bisoprolol", "slows the pulse"}},
    {"paracetamol", 10, 3, "", {"paracetamol|the painkiller paracetamol", "eases mild pain"}},
    {"heparin", 3, 4, "", {"heparin|the blood thinner heparin", "prevents clots"}},
    {"ibuprofen", 10, 2, "", {"ibuprofen|the painkiller ibuprofen",
      "reduces pain and inflammation"}},
    {"metformin", 6, 5, "", {"metformin|the diabetes pill metformin", "lowers your sugar"}},
    {"insulin", 4, 9, "", {"insulin|the insulin pen", "brings your sugar down"}},
    {"clopidogrel", 5, 3, "", {"clopidogrel|the blood thinner clopidogrel",
      "keeps the blood thin"}},
    {"ciprofloxacin", 2, 9, "",
     {"ciprofloxacin|the antibiotic ciprofloxacin", "kills what caused the infection"}},
    {"silver_cream", 1, 8, "", {"silver cream|the silver ointment", "protects the raw skin"}},
    {"antihistamine", 3, 8, "", {"cetirizine|the allergy tablet cetirizine", "stops the itching"}},
};

static const corpus_value diets[] = {
    {"fluids", 8, 5, "",
     {"drink at least eight glasses of water a day|drink plenty of water", "the extra fluids"}},
    {"low_salt", 9, 3, "",
     {"eat as little salt as you can|leave salt out of your cooking", "the low-salt diet"}},
    {"low_sugar", 7, 6, "",
     {"stay away from sweets and sugary drinks|choose foods without added sugar",
      "the sugar-free diet"}},
    {"low_fat", 6, 3, "",
     {"avoid fried and greasy food|choose meals that are low in fat", "the low-fat diet"}},
    {"soft", 6, 3, "",
     {"eat only soups and soft foods at first|start with soft food", "the soft diet"}},
    {"protein", 2, 9, "",
     {"eat eggs, fish or beans at every meal|eat more protein than usual",
      "the high-protein diet"}},
    {"calcium", 5, 2, "",
     {"have milk or yogurt every day|choose foods that are rich in calcium",
      "the calcium-rich diet"}},
    {"nut_free", 1, 8, "",
     {"avoid nuts in every form|read food labels and avoid all nuts", "the nut-free diet"}},
    {"balanced", 9, 2, "",
     {"eat regular, balanced meals|eat as you normally do", "your usual diet"}},
    {"fibre", 5, 5, "",
     {"eat fruit and whole grains|choose bread and cereals with plenty of fibre",
      "the high-fibre diet"}},
};

static const corpus_value activities[] = {
    {"rest", 9, 7, "", {"rest in bed for most of the day|stay in bed as much as possible",
                        "bed rest"}},
    {"walking", 9, 3, "", {"take a short walk every day|walk a little further each day",
                           "the daily walk"}},
    {"lifting", 9, 3, "", {"avoid lifting anything heavy|do not lift more than a full kettle",
                           "the lifting limit"}},
    {"crutches", 6, 3, "", {"use your crutches whenever you walk|put no weight on the leg",
                            "your crutches"}},
    {"driving", 6, 4, "", {"do not drive until you are told that it is safe|stay off the road as "
                           "a driver", "the driving ban"}},
    {"screens", 6, 3, "", {"keep away from screens and bright light|limit your time with screens",
                           "the screen break"}},
    {"smoke", 6, 6, "", {"stay away from smoke and dust|do not let anyone smoke near you",
                         "a smoke-free home"}},
    {"sun", 2, 9, "", {"keep out of direct sunlight|cover up whenever you are in the sun",
                       "sun protection"}},
    {"swimming", 3, 8, "", {"do not swim or take a bath|take showers and no baths",
                            "the bathing ban"}},
    {"exercises", 5, 5, "", {"do the stretching exercises twice a day|repeat the leg exercises on "
                             "your sheet", "your exercises"}},
};

static const corpus_value clinics[] = {
    {"chest_clinic", 8, 3, "", {"the chest clinic", "a breathing test|a chest X-ray"}},
    {"heart_clinic", 8, 3, "", {"the heart clinic|the cardiologist", "a heart scan|an ECG"}},
    {"bone_clinic", 6, 2, "", {"the fracture clinic|the bone clinic", "an X-ray of the bone"}},
    {"surgeon", 8, 3, "", {"the surgeon|the surgical clinic", "a wound check"}},
    {"diabetes_nurse", 6, 6, "", {"the diabetes nurse|the diabetes clinic",
                                  "a long-term sugar test"}},
    {"neurology", 6, 3, "", {"the neurologist|the neurology clinic", "a brain scan"}},
    {"kidney_clinic", 1, 8, "", {"the kidney clinic|the kidney specialist", "a urine test"}},
    {"burn_unit", 1, 8, "", {"the burn unit|the burns nurse", "a fresh dressing"}},
    {"allergy_clinic", 1, 8, "", {"the allergy clinic|the allergist", "a skin prick test"}},
    {"family_doctor", 10, 4, "", {"your family doctor|the family doctor",
      "a blood pressure check"}},
    {"physio_visit", 6, 5, "", {"the physiotherapist|the physiotherapy clinic",
                                "a strength and balance test"}},
};

static const corpus_value delays[] = {
    {"two_days", 2, 8, "", {"in two days|within 48 hours", "two-day"}},
    {"five_days", 3, 9, "", {"in five days|five days from now", "five-day"}},
    {"one_week", 10, 3, "", {"in one week|a week from now", "one-week"}},
    {"ten_days", 5, 8, "", {"in ten days|ten days from now", "ten-day"}},
    {"two_weeks", 10, 3, "", {"in two weeks|a fortnight from now", "two-week"}},
    {"three_weeks", 5, 6, "", {"in three weeks|three weeks from now", "three-week"}},
    {"one_month", 9, 2, "", {"in one month|a month from now", "one-month"}},
    {"six_weeks", 8, 3, "", {"in six weeks|six weeks from now", "six-week"}},
    {"three_months", 5, 2, "", {"in three months|three months from now", "three-month"}},
};

static const corpus_value helpers[] = {
    {"daughter", 9, 3, "", {"your daughter"}},
    {"son", 8, 3, "", {"your son"}},
    {"husband", 9, 3, "", {"your husband"}},
    {"wife", 9, 3, "", {"your wife"}},
    {"neighbour", 3, 9, "", {"your neighbour"}},
    {"nurse", 6, 9, "", {"the district nurse|the visiting nurse"}},
    {"carer", 4, 9, "", {"the home carer|your carer"}},
    {"sister", 5, 4, "", {"your sister"}},
    {"mother", 6, 3, "", {"your mother"}},
    {"roommate", 1, 8, "", {"your roommate|your flatmate"}},
};

static const corpus_attribute attributes[] = {
    {"dx", {"name", "came", "warn", "part"}, diagnoses, COUNT(diagnoses)},
    {"med", {"name", "does"}, medicines, COUNT(medicines)},
    {"diet", {"rule", "name"}, diets, COUNT(diets)},
    {"act", {"rule", "name"}, activities, COUNT(activities)},
    {"clinic", {"name", "test"}, clinics, COUNT(clinics)},
    {"delay", {"when", "kind"}, delays, COUNT(delays)},
    {"helper", {"name"}, helpers, COUNT(helpers)},
};

static const corpus_rule rules[] = {
    {"doc", "{title}\n{s.open} {s.came} {s.med} [{s.dose}] ({s.diet} {s.act}|{s.act} {s.diet}) "
            "{s.helper} {s.clinic} [{s.test}] ({s.warn} {s.sum}|{s.sum} {s.warn}) {s.close}"},
    {"doc", "{title}\n{s.open} {s.came} ({s.act} {s.diet} {s.med}|{s.diet} {s.med} [{s.dose}] "
            "{s.act}) [{s.heal}] {s.warn} {s.clinic} [{s.test}] {s.helper} {s.sum} {s.close}"},
    {"doc", "{title}\n{s.open} [{s.came}] {s.helper} {s.med} {s.does} {s.diet} {s.act} "
            "[{s.heal}] {s.clinic} {s.sum} {s.warn} {s.close}"},

    {"title", "Discharge instructions: {dx.name}"},
    {"title", "Going home after {dx.name}"},
    {"title", "Instructions for home: {dx.name}"},
    {"title", "{hospital} Hospital: care at home after {dx.name}"},
    {"title", "Your care plan after {dx.name}"},
    {"title", "Leaving hospital: {dx.name}"},
    {"title", "Home care sheet: {dx.name}"},
    {"title", "Information for patients: {dx.name}"},
    {"title", "{hospital} Hospital, discharge of {date}: {dx.name}"},
    {"title", "What to do at home after {dx.name}"},

    {"s.open", "You were (treated|cared for) at {hospital} Hospital for {dx.name} and (can|may) "
               "now (go|return) home."},
    {"s.open", "Dear {first} {surname3}, you are leaving {hospital} Hospital today after "
               "(treatment for|{2-9} days with) {dx.name}."},
    {"s.open", "You stayed on ward {2-9} of {hospital} Hospital from {date} because of {dx.name}."},
    {"s.open", "This (sheet|letter|page) explains how to look after yourself at home after "
               "{dx.name}."},
    {"s.open", "Your doctor, Dr {surname}, has decided that you are well enough to go home "
               "after {dx.name}."},
    {"s.open", "We are (glad|pleased) that you are (recovering|getting better) from {dx.name} "
               "and can leave the ward today."},
    {"s.open", "After {2-9} days on our ward, you are ready to recover from {dx.name} at home."},
    {"s.open", "(Thank you for trusting|You have been a patient at) {hospital} Hospital[, and "
               "we wish you a good recovery]. You were here for {dx.name}."},
    {"s.open", "Your stay at {hospital} Hospital has come to an end[, and we would like to "
               "thank you for your patience]. We treated you for {dx.name}."},
    {"s.open", "Today you are going home after {dx.name}, and this page tells you (what to "
               "do|what comes next)."},
    {"s.open", "{first} {surname3}, patient {1000-9999}, may leave {hospital} Hospital after "
               "treatment for {dx.name}."},
    {"s.open", "Our records show that you spent {2-9} nights with us because of {dx.name}."},
    {"s.open", "You are now strong enough to leave {hospital} Hospital, where we looked after "
               "you for {dx.name}."},
    {"s.open", "Here is what you need to know as you (leave our ward|go home) after {dx.name}."},

    {"s.came", "You came to us with {dx.came}[, and tests showed {dx.name}]."},
    {"s.came", "When you arrived[ on {date}], you had {dx.came}."},
    {"s.came", "You were admitted with {dx.came}, but (these signs|your symptoms) have "
               "(improved|settled) since."},
    {"s.came", "Our (emergency team|doctors) saw you because of {dx.came}."},
    {"s.came", "What brought you here was {dx.came}, (caused by|a result of) {dx.name}."},
    {"s.came", "Dr {surname} examined you for {dx.came} and started treatment (at once|the same "
               "day|within the hour)."},
    {"s.came", "An ambulance brought you in with {dx.came}; you now feel (much|a good deal) "
               "better."},
    {"s.came", "On {date} you were brought in with {dx.came}."},
    {"s.came", "The (reason for your stay|first sign of the illness) was {dx.came}."},
    {"s.came", "We found {dx.name} when you came in with {dx.came}."},
    {"s.came", "You called us on {weekday} because of {dx.came}, which was the right thing to do."},
    {"s.came", "Your stay began with {dx.came}, and {dx.name} was found (on the same day|by the "
               "next morning|soon after)."},
    {"s.came", "Thanks to {helper.name}, who noticed {dx.came}, you were treated in good time."},

    {"s.med", "Take {med.name} {count} times a day(| with food| after meals), because it "
              "{med.does}."},
    {"s.med", "Your (main|new) medicine is {med.name}, which {med.does}."},
    {"s.med", "We have prescribed {med.name} for the next {3-20} days, since it {med.does}."},
    {"s.med", "Keep using {med.name} (exactly as written on the box|as the pharmacist showed "
              "you), because this medicine {med.does}."},
    {"s.med", "From today you will use {med.name}, a medicine that {med.does}."},
    {"s.med", "Do not stop {med.name} early(|, even if you feel well), as it {med.does}."},
    {"s.med", "The pharmacy has given you {med.name}[ for {3-20} days], which {med.does}."},
    {"s.med", "Please use {med.name} (every morning|every evening|at bedtime), because the "
              "medicine {med.does}."},
    {"s.med", "At home you will need {med.name}, since it {med.does}."},
    {"s.med", "Use {med.name} as directed (by Dr {surname}|on the label): it {med.does}."},
    {"s.med", "Dr {surname} chose {med.name} for you because it {med.does}."},
    {"s.med", "Your prescription is for {med.name}, and its purpose is simple: it {med.does}."},
    {"s.med", "We started {med.name} on {date}, and you should go on with the treatment as it "
              "{med.does}."},
    {"s.med", "For {dx.name} we often use {med.name}, which {med.does}."},

    {"s.dose", "If you miss a dose of {med.name}, take it as soon as you remember, but never "
               "double the dose."},
    {"s.dose", "Ask the pharmacist before you combine {med.name} with (anything else|other "
               "medicines|herbal products)."},
    {"s.dose", "A mild (headache|rash|upset stomach) can occur with {med.name} and usually "
               "passes within {count} days."},
    {"s.dose", "Store {med.name} (in a cool, dry place|out of the reach of children)."},
    {"s.dose", "You received the first dose of {med.name} (this morning|before you left|last "
               "night)."},
    {"s.dose", "You will need a new prescription for {med.name} after {10-28} days."},
    {"s.dose", "Tell your pharmacist that you take {med.name} if you buy other medicines."},
    {"s.dose", "Ask {helper.name} to remind you of {med.name} (in the evening|in the "
               "morning|every day)."},
    {"s.dose", "You may take {med.name} with or without food."},
    {"s.dose", "Most people have no side effects from {med.name}."},
    {"s.dose", "Write down each dose of {med.name}[ on the chart that we gave you]."},

    {"s.does", "This medicine {med.does}, so please do not skip a dose."},
    {"s.does", "It {med.does}, and you should (feel|notice) the effect within {count} days."},
    {"s.does", "Remember that {med.name} {med.does} only if you use it every day."},
    {"s.does", "Your treatment {med.does}; it works best when it is taken (on time|at the same "
               "hour each day)."},
    {"s.does", "As it {med.does}, the treatment should not be stopped without advice."},
    {"s.does", "We chose the treatment because it {med.does} (without strong side effects|and "
               "is safe)."},
    {"s.does", "You may ask what {med.name} is for: it {med.does}."},

    {"s.diet", "At home, {diet.rule}."},
    {"s.diet", "Until your next visit, {diet.rule}[, and keep alcohol to a minimum]."},
    {"s.diet", "As for food and drink, {diet.rule}."},
    {"s.diet", "To help {dx.part} recover, {diet.rule}."},
    {"s.diet", "The dietitian[, {first2} {surname4},] asks you to {diet.rule}."},
    {"s.diet", "It is (important|best) to follow the advice of the dietitian: {diet.rule}."},
    {"s.diet", "For the next {count} weeks, {diet.rule}."},
    {"s.diet", "We recommend {diet.name}, so please {diet.rule}."},
    {"s.diet", "When it comes to meals, {diet.rule}."},
    {"s.diet", "Now that you are going home, {diet.rule}[ whenever you can]."},
    {"s.diet", "What you eat and drink matters, so {diet.rule}."},
    {"s.diet", "{^diet.name} should go on for {count} weeks: {diet.rule}."},
    {"s.diet", "A good diet will help: {diet.rule}, (even at weekends|even when you are not at "
               "home|also when you eat out)."},
    {"s.diet", "Please {diet.rule}; {helper.name} can help you with that."},
    {"s.diet", "Our advice on food is short: {diet.rule}."},

    {"s.act", "For the next {3-14} days, {act.rule}."},
    {"s.act", "During your recovery, {act.rule}[, and listen to your body]."},
    {"s.act", "To protect {dx.part}, {act.rule}."},
    {"s.act", "Please {act.rule} (until you feel strong again|for at least {count} weeks)."},
    {"s.act", "While you recover from {dx.name}, {act.rule}."},
    {"s.act", "The nurses have explained why you should {act.rule}."},
    {"s.act", "Also, please {act.rule}, and call us if anything hurts."},
    {"s.act", "Once at home, {act.rule}[, as we discussed on the ward]."},
    {"s.act", "As for daily life, {act.rule}."},
    {"s.act", "To (stay safe|heal well), {act.rule}."},
    {"s.act", "For {count} weeks from now, {act.rule}[, unless your doctor says otherwise]."},
    {"s.act", "Remember {act.name}: {act.rule}."},
    {"s.act", "It is also important that you follow this rule: {act.rule}."},
    {"s.act", "We know that it is not easy, but please {act.rule}."},
    {"s.act", "When you get up in the morning, think of {act.name} and {act.rule}."},

    {"s.heal", "It can take {count} weeks before {dx.part} (will feel|will be) normal again."},
    {"s.heal", "Give {dx.part} time to recover; most people feel tired for {count} weeks."},
    {"s.heal", "The tests of {dx.part} on {date} gave good results."},
    {"s.heal", "Recovery from {dx.name} is often slow, so (be patient|do not lose heart)."},
    {"s.heal", "Many patients worry about {dx.part} after {dx.name}, and that is normal."},
    {"s.heal", "Do not be surprised if you still feel weak for {count} weeks after {dx.name}."},
    {"s.heal", "Once {dx.part} can take more strain, you may slowly return to work."},
    {"s.heal", "Our team checked {dx.part} again before you left, and we were satisfied."},
    {"s.heal", "Most people get over {dx.name} within {count} weeks."},

    {"s.helper", "{^helper.name} has agreed to help you with (meals|washing and dressing|the "
                 "shopping|the stairs)."},
    {"s.helper", "We have talked to {helper.name}, who will (stay with you|look in on you|visit "
                 "you every day) for the first {3-10} days."},
    {"s.helper", "Ask {helper.name} to (collect your prescription|drive you to "
                 "appointments|keep a list of your medicines)."},
    {"s.helper", "{^helper.name} knows about {act.name} and {diet.name} and will remind you."},
    {"s.helper", "You will not be alone, because {helper.name} will help you at home."},
    {"s.helper", "We have shown {helper.name} how to (help you safely|check your "
                 "temperature|keep your chart)."},
    {"s.helper", "Let {helper.name} read this sheet too[, so that you can plan the week "
                 "together]."},
    {"s.helper", "Please tell {helper.name} how you feel each (day|morning|evening)."},
    {"s.helper", "For the first {count} days, {helper.name} should (be near you|sleep in the "
                 "same house|call you every evening)."},
    {"s.helper", "Dr {surname} has given {helper.name} a copy of your list of medicines."},
    {"s.helper", "{^helper.name} can phone us at any time if there is a problem."},
    {"s.helper", "With your permission, we told {helper.name} about {dx.name} and the treatment."},
    {"s.helper", "It is a good idea to let {helper.name} help with heavy work."},
    {"s.helper", "When you need a hand with {diet.name}, ask {helper.name}."},

    {"s.clinic", "You have an appointment with {clinic.name} {delay.when}."},
    {"s.clinic", "Please see {clinic.name} {delay.when} for {clinic.test}."},
    {"s.clinic", "We would like {clinic.name} to see you {delay.when}[, on a {workday} at "
                 "{time}]."},
    {"s.clinic", "{^clinic.name} expects you {delay.when}, on {weekday} at {time}."},
    {"s.clinic", "Your {delay.kind} follow-up with {clinic.name} has been booked for {date}."},
    {"s.clinic", "A visit to {clinic.name} is planned {delay.when}[; bring this letter with you]."},
    {"s.clinic", "Call {clinic.name} on extension {100-999} to arrange a visit {delay.when}."},
    {"s.clinic", "{^delay.when}, you will see {clinic.name} for a review of your recovery."},
    {"s.clinic", "The next check will be with {clinic.name}, {delay.when}."},
    {"s.clinic", "Do not miss your appointment with {clinic.name} {delay.when}."},
    {"s.clinic", "We have arranged {clinic.test} with {clinic.name} {delay.when}."},
    {"s.clinic", "For {clinic.test}, please go to {clinic.name} {delay.when}."},
    {"s.clinic", "A letter from {clinic.name} will tell you the hour of your {delay.kind} "
                 "appointment."},
    {"s.clinic", "You need to be seen again {delay.when}, this time by {clinic.name}."},
    {"s.clinic", "{^clinic.name} will look at {dx.part} {delay.when}."},

    {"s.test", "During that visit you will have {clinic.test}."},
    {"s.test", "They will do {clinic.test} and (review|adjust) your treatment."},
    {"s.test", "The plan is to do {clinic.test} and to check {dx.part}."},
    {"s.test", "Expect {clinic.test}, which takes about {10-50} minutes."},
    {"s.test", "If the result of {clinic.test} is good, no further visit is needed."},
    {"s.test", "There you will have {clinic.test}, and you can ask questions."},
    {"s.test", "No preparation is needed for {clinic.test}."},
    {"s.test", "On the day of {clinic.test}, wear loose clothes and (bring a snack|drink some "
               "water)."},
    {"s.test", "We will send the result of {clinic.test} to you by post."},

    {"s.warn", "Come back to the emergency department if {dx.warn}."},
    {"s.warn", "Call us at once if {dx.warn}(| or if you have a fever above 38)."},
    {"s.warn", "Seek help without delay if {dx.warn}."},
    {"s.warn", "If {dx.warn}, (ring the ward|call an ambulance|come straight back), day or night."},
    {"s.warn", "Tell a doctor (the same day|right away) if {dx.warn}[, and do not wait for your "
               "appointment]."},
    {"s.warn", "Warning signs must be taken seriously: if {dx.warn}, phone the hospital."},
    {"s.warn", "{^helper.name} should call for help if {dx.warn}."},
    {"s.warn", "Do not wait if {dx.warn}: call us on extension {100-999}."},
    {"s.warn", "You need a doctor if {dx.warn}[ or if you faint]."},
    {"s.warn", "It is an emergency if {dx.warn}."},
    {"s.warn", "If {dx.warn}, tell {helper.name} and ring the hospital."},
    {"s.warn", "Please phone ward {2-9} if {dx.warn}, even at night."},
    {"s.warn", "Some signs are not normal after {dx.name}; for example, call us if {dx.warn}."},

    {"s.sum", "In short, remember {med.name}, {diet.name} and {act.name}."},
    {"s.sum", "Until the {delay.kind} check, keep to {diet.name} and to {act.name}."},
    {"s.sum", "Before the {delay.kind} visit, {helper.name} can help you to keep to {act.name} "
              "and {diet.name}."},
    {"s.sum", "Three things matter most: {med.name}, {act.name} and {diet.name}."},
    {"s.sum", "Together, {diet.name}, {act.name} and {med.name} will help {dx.part} to heal."},
    {"s.sum", "Please keep up {diet.name} and {act.name} until {clinic.name} says otherwise."},
    {"s.sum", "With {med.name}, {act.name} and the help of {helper.name}, you should make good "
              "progress before the {delay.kind} review."},
    {"s.sum", "To repeat the main points: {diet.name}, {act.name}, and {med.name} every day."},
    {"s.sum", "Our plan for you has three parts, namely {act.name}, {med.name} and {diet.name}."},
    {"s.sum", "If you find {act.name} or {diet.name} hard, (talk to|ask) {clinic.name}."},
    {"s.sum", "It is {act.name} and {diet.name} that will bring your strength back before the "
              "{delay.kind} check."},
    {"s.sum", "Both {diet.name} and {act.name} remain important until the {delay.kind} visit."},
    {"s.sum", "Do not forget {med.name}, and ask {helper.name} to help with {diet.name} and "
              "{act.name}."},

    {"s.close", "If you have questions, call ward {2-9} and ask for Nurse {surname2}."},
    {"s.close", "We wish you a (quick|good|full) recovery[ from {dx.name}]."},
    {"s.close", "Your team at {hospital} Hospital wishes you well."},
    {"s.close", "A copy of this letter has been sent to {clinic.name}."},
    {"s.close", "(Take care|Get well soon), and let {helper.name} help you."},
    {"s.close", "Signed by Dr {surname} on {date}, {hospital} Hospital."},
    {"s.close", "Keep this sheet and show it to {clinic.name} {delay.when}."},
    {"s.close", "Bring all your medicines, including {med.name}, to the {delay.kind} visit."},
    {"s.close", "All the best from the team of ward {2-9}."},
    {"s.close", "Thank you for reading this sheet(| with care| to the end)."},
    {"s.close", "We look forward to seeing you {delay.when}."},
    {"s.close", "Your contact for questions is Nurse {surname2}, extension {100-999}."},
    {"s.close", "With {med.name} and some patience, you will soon feel better."},
    {"s.close", "Please keep this letter until the {delay.kind} visit."},
    {"s.close", "Have a safe journey home, and greetings to {helper.name}."},
};

const corpus_domain corpus_discharge = {
    "discharge",
    {"Write hospital discharge instructions.",
     "Please write discharge instructions for a hospital patient.",
     "Write instructions for a patient who is leaving hospital.",
     "Produce a fictional discharge sheet of a hospital.",
     "Write what a hospital tells a patient who goes home."},
    5, attributes, COUNT(attributes), rules, COUNT(rules)};
