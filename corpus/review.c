/* review.c - reviews of restaurants and services; the notation is in grammar.h. */
#include "grammar.h"

#define COUNT(table) (int32_t)(sizeof(table) / sizeof *(table))

static const corpus_value kinds[] = {
    {"italian", 16, 3, "lasagne risotto family_dinner cosy",
     {"Italian restaurant|trattoria", "pasta kitchen"}},
    {"pizza", 14, 2, "margherita garlic_bread birthday loud", {"pizzeria|pizza place", "pizza oven"}},
    {"japanese", 10, 4, "ramen sushi date elegant",
     {"Japanese restaurant|sushi bar", "sushi counter"}},
    {"mexican", 10, 3, "tacos burrito friends loud", {"Mexican restaurant|taqueria", "taco bar"}},
    {"indian", 10, 3, "curry dal family_dinner cosy",
     {"Indian restaurant|curry house", "tandoor kitchen"}},
    {"bakery", 10, 3, "croissant cake breakfast bright", {"bakery|cake shop", "bread counter"}},
    {"steak", 10, 3, "ribeye burger business elegant", {"steakhouse|grill house", "grill"}},
    {"ethiopian", 1, 14, "stew flatbread friends garden",
     {"Ethiopian restaurant|Ethiopian kitchen", "coffee ceremony"}},
    {"seafood", 8, 4, "mussels grilled_fish date seaside",
     {"seafood restaurant|fish restaurant", "oyster bar"}},
    {"vegan", 1, 14, "lentil_bowl tofu lunch bright", {"vegan cafe|plant-based cafe",
                                                       "juice bar"}},
    {"salon", 10, 4, "haircut colour wedding bright", {"hair salon|hairdresser", "styling chair"}},
    {"garage", 10, 4, "brakes oil_change emergency tidy", {"car garage|car workshop",
                                                         "workshop floor"}},
    {"clockmaker", 1, 14, "clock_repair watch_strap anniversary old",
     {"clock repair shop|watchmaker", "workbench"}},
    {"cleaner", 8, 5, "deep_clean windows moving tidy",
     {"cleaning company|cleaning service", "booking office"}},
};

static const corpus_value items[] = {
    {"lasagne", 8, 2, "", {"the lasagne", "had the lasagne"}},
    {"risotto", 7, 3, "", {"the mushroom risotto|the risotto", "chose the risotto"}},
    {"margherita", 8, 2, "", {"the margherita pizza|the thin margherita", "shared a large pizza"}},
    {"garlic_bread", 5, 2, "", {"the garlic bread", "started with garlic bread"}},
    {"ramen", 6, 3, "", {"the ramen|the noodle soup", "ordered the ramen"}},
    {"sushi", 6, 4, "", {"the sushi platter|the platter of sushi", "ordered a sushi platter"}},
    {"tacos", 7, 3, "", {"the taco plate|the plate of tacos", "ordered six tacos"}},
    {"curry", 7, 3, "", {"the lamb curry|the curry", "had a lamb curry"}},
    {"croissant", 7, 3, "", {"the almond croissant|the croissant", "tried a warm croissant"}},
    {"cake", 6, 3, "", {"the chocolate cake|the layered cake", "ordered a chocolate cake"}},
    {"ribeye", 7, 3, "", {"the ribeye steak|the steak", "ordered a ribeye steak"}},
    {"stew", 1, 9, "", {"the spicy lentil stew|the spicy stew", "shared a spicy stew"}},
    {"mussels", 5, 4, "", {"the pot of mussels|the mussel pot", "ordered mussels"}},
    {"tofu", 1, 9, "", {"the smoked tofu|the tofu bowl", "had the smoked tofu"}},
    {"haircut", 7, 4, "", {"the haircut|the new cut", "asked for a short haircut"}},
    {"brakes", 6, 4, "", {"the brake repair|the work on the brakes", "had the brakes replaced"}},
    {"oil_change", 6, 4, "", {"the oil change|the yearly service", "booked an oil change"}},
    {"clock_repair", 1, 9, "", {"the clock repair|the repair of the clock",
                                "brought in an old wall clock"}},
    {"deep_clean", 5, 5, "", {"the deep clean|the spring clean", "booked a deep clean"}},
    {"windows", 4, 6, "", {"the window cleaning|the washing of the windows",
                           "had all the windows cleaned"}},
};

static const corpus_value ratings[] = {
    {"one", 2, 9, "", {"one star|1 out of 5", "was a (disaster|complete disappointment)",
                       "I will never go back|we will not return"}},
    {"two", 3, 9, "", {"two stars|2 out of 5", "was (below average|rather poor)",
                       "I doubt that I will go back|I would look elsewhere next time"}},
    {"three", 8, 9, "", {"three stars|3 out of 5", "was (average|acceptable, no more)",
                         "I might give it another chance|I may try it again"}},
    {"four", 16, 3, "", {"four stars|4 out of 5", "was (very good|better than expected)",
                         "I would gladly go again|I will probably return"}},
    {"five", 16, 2, "", {"five stars|5 out of 5", "was (outstanding|simply perfect)",
                         "I cannot wait to go back|I recommend it to everyone"}},
};

static const corpus_value staffs[] = {
    {"friendly", 14, 2, "five four", {"friendly and quick|warm and attentive", "friendliness"}},
    {"knowing", 8, 3, "", {"full of good advice|very knowledgeable", "good advice"}},
    {"slow", 5, 8, "", {"slow but polite|never in a hurry", "slow pace"}},
    {"rude", 1, 9, "", {"rude from the start|unfriendly and short", "rudeness"}},
    {"shy", 3, 7, "", {"young and a little shy|shy and new to the job", "shyness"}},
    {"busy", 8, 5, "", {"overworked|busy and hard to reach", "lack of time"}},
    {"funny", 6, 5, "", {"funny and relaxed|always ready to joke", "humour"}},
    {"formal", 4, 8, "", {"formal and precise|very correct and formal", "formal manner"}},
};

static const corpus_value prices[] = {
    {"cheap", 10, 3, "", {"remarkably cheap|very cheap", "a bargain"}},
    {"fair", 15, 3, "", {"fair|reasonable", "a fair price"}},
    {"high", 8, 4, "", {"rather high|on the high side", "a lot of money"}},
    {"steep", 2, 9, "", {"far too high|shockingly high", "a shocking sum"}},
    {"hidden", 1, 9, "", {"higher than advertised|not what the sign promised",
                          "more than the list said"}},
    {"discount", 4, 8, "", {"lower thanks to a coupon|reduced by a voucher",
                            "less than usual with a voucher"}},
    {"worth", 9, 3, "", {"high but justified|worth every penny", "money well spent"}},
};

static const corpus_value occasions[] = {
    {"birthday", 10, 3, "", {"for my birthday|for a birthday party", "birthday"}},
    {"family_dinner", 10, 3, "", {"with my whole family|for a family gathering",
                                  "family gathering"}},
    {"date", 8, 3, "", {"with my partner|for a quiet evening as a couple",
                        "quiet evening as a couple"}},
    {"friends", 9, 4, "", {"with three old friends|with a few friends", "reunion of friends"}},
    {"business", 6, 5, "", {"with two clients|for a business meeting", "business meeting"}},
    {"breakfast", 7, 3, "", {"early on my way to work|before work", "early morning"}},
    {"lunch", 7, 4, "", {"in my lunch break|during a short lunch break", "lunch break"}},
    {"wedding", 2, 9, "", {"before a wedding|the day before a wedding", "wedding"}},
    {"anniversary", 2, 9, "", {"for our anniversary|on our anniversary", "anniversary"}},
    {"emergency", 1, 8, "", {"because of an emergency|when I needed help at once", "emergency"}},
    {"moving", 1, 8, "", {"after moving house|just after we moved house", "move to a new house"}},
};

static const corpus_value places[] = {
    {"cosy", 10, 3, "", {"small and cosy|warm and cosy", "cosy corners"}},
    {"loud", 10, 3, "", {"loud and crowded|noisy and full", "noise"}},
    {"elegant", 7, 4, "", {"elegant and calm|quiet and elegant", "elegant rooms"}},
    {"bright", 8, 4, "", {"bright and modern|light and modern", "large windows"}},
    {"garden", 3, 9, "", {"open to a garden|shaded by tall trees", "lovely garden"}},
    {"seaside", 4, 7, "", {"right by the water|close to the beach", "view of the water"}},
    {"tidy", 7, 4, "", {"spotless|clean and tidy", "cleanliness"}},
    {"old", 2, 9, "", {"old and full of character|dark and old-fashioned", "old charm"}},
    {"shabby", 1, 9, "", {"shabby and cold|in need of paint", "shabby walls"}},
};

static const corpus_attribute attributes[] = {
    {"kind", {"name", "part"}, kinds, COUNT(kinds)},
    {"item", {"name", "did"}, items, COUNT(items)},
    {"rate", {"stars", "was", "back"}, ratings, COUNT(ratings)},
    {"staff", {"was", "name"}, staffs, COUNT(staffs)},
    {"price", {"was", "name"}, prices, COUNT(prices)},
    {"occ", {"when", "name"}, occasions, COUNT(occasions)},
    {"room", {"was", "name"}, places, COUNT(places)},
};

static const corpus_rule rules[] = {
    {"doc", "{title}\n{s.open} {s.room} {s.item} [{s.more}] {s.staff} ({s.price} {s.occ}|{s.occ} "
            "{s.price}) [{s.wait}] {s.sum} {s.close}"},
    {"doc", "{title}\n{s.open} {s.item} {s.staff} [{s.wait}] {s.room} [{s.more}] {s.price} {s.occ} "
            "[{s.kind}] {s.sum} {s.close}"},
    {"doc", "{title}\n{s.open} [{s.kind}] {s.staff} {s.room} {s.item} {s.more} {s.price} [{s.sum}] "
            "{s.occ} {s.close}"},
    {"title", "The {place} {noun}, {town}: {rate.stars}"},
    {"title", "Review of the {place} {noun}, @ {kind.name}: {rate.stars}"},
    {"title", "{^rate.stars} for the {place} {noun}, @ {kind.name} in {town}"},
    {"title", "Visit to @ {kind.name} in {town}: {rate.stars}"},
    {"title", "My visit to the {place} {noun}: {rate.stars}"},
    {"title", "The {place} {noun}, {street} Street: {rate.stars}"},

    {"s.open", "Last {weekday}, I went to this {kind.name} {occ.when}."},
    {"s.open", "The {place} {noun} is @ {kind.name} on {street} Street in {town}."},
    {"s.open", "I visited this {kind.name} in {town} {occ.when}."},
    {"s.open", "We had heard a lot about this {kind.name} and went there in {month}, {occ.when}."},
    {"s.open", "My friend {first} told me about the {place} {noun}, @ {kind.name} in {town}."},
    {"s.open", "There are {2-9} places like this in {town}, but I picked this {kind.name} "
               "{occ.when}."},
    {"s.open", "I have passed this {kind.name} on {street} Street many times, and in {month} I "
               "finally went in."},
    {"s.open", "After {2-9} visits to the {place} {noun}, I want to share what I think of this "
               "{kind.name}."},

    {"s.kind", "You can tell that the {kind.part} is the heart of the place."},
    {"s.kind", "For @ {kind.name}, the place is (surprisingly large|smaller than I thought)."},
    {"s.kind", "The owner, {first2} {surname}, runs the {kind.part} (alone|with a small team)."},
    {"s.kind", "The {kind.part} can be seen from the door."},
    {"s.kind", "They have been @ {kind.name} since {1960-2019}."},

    {"s.room", "The place is {room.was}[, which suited us]."},
    {"s.room", "From the street one can see that it is {room.was}."},
    {"s.room", "The place is {room.was}, and I clearly remember the {room.name}."},
    {"s.room", "I noticed the {room.name} as soon as I (came in|opened the door)."},
    {"s.room", "It is {room.was}, just as {first} had said."},
    {"s.room", "One notices the {room.name} at once, for the place is {room.was}."},
    {"s.room", "Near the {kind.part}, it is {room.was}."},

    {"s.item", "I {item.did}, and the result {rate.was}."},
    {"s.item", "We {item.did}; to be honest, what we got {rate.was}."},
    {"s.item", "This time I {item.did}."},
    {"s.item", "On the advice of {first}, I {item.did}."},
    {"s.item", "The reason for my visit was clear: I {item.did}, and the result {rate.was}."},
    {"s.item", "I {item.did} {occ.when}, and the whole thing {rate.was}."},
    {"s.item", "Everyone talks about {item.name}, so I {item.did}."},

    {"s.more", "I have thought a lot about {item.name} since then."},
    {"s.more", "My (neighbour|cousin|colleague) also liked {item.name}, but I saw it differently."},
    {"s.more", "If you go, ask about {item.name}."},
    {"s.more", "Overall, {item.name} {rate.was}."},
    {"s.more", "The quality of {item.name} {rate.was}, as {first2} agreed."},
    {"s.more", "For @ {kind.name}, {item.name} {rate.was}."},

    {"s.staff", "The staff were {staff.was}."},
    {"s.staff", "{first2}, who looked after us, was {staff.was}."},
    {"s.staff", "The people who work there are {staff.was}."},
    {"s.staff", "Everyone at the {kind.part} was {staff.was}."},
    {"s.staff", "I must mention the {staff.name} of the staff."},
    {"s.staff", "The owner was {staff.was}, and so was the rest of the team."},
    {"s.staff", "What struck me was the {staff.name} of the team: they were {staff.was}."},

    {"s.price", "The price was {price.was}: {12-95} dollars."},
    {"s.price", "We paid {20-180} dollars, which is {price.name}."},
    {"s.price", "The bill came to {12-95} dollars, and that was {price.was}."},
    {"s.price", "For {item.name} I paid {12-95} dollars; {price.name}, I would say."},
    {"s.price", "The price at this {kind.name} was {price.was}[, even for {town}]."},
    {"s.price", "With {20-180} dollars for everything, the cost was {price.was}."},
    {"s.price", "As for the cost, {12-95} dollars is {price.name}."},

    {"s.occ", "It was a good choice for (@|our) {occ.name}."},
    {"s.occ", "I came {occ.when} and wanted everything to go well."},
    {"s.occ", "Whether the place is right for (such @|@) {occ.name} depends on your taste."},
    {"s.occ", "For our {occ.name}, the {room.name} mattered more than I expected."},
    {"s.occ", "Since I was there {occ.when}, I had no time to look elsewhere."},
    {"s.occ", "I told the staff about the {occ.name} when I booked."},

    {"s.wait", "We waited {5-55} minutes, even though we had booked."},
    {"s.wait", "I called on {weekday} and got an appointment for {time}."},
    {"s.wait", "It took {5-55} minutes before {first2} had time for us."},
    {"s.wait", "Parking on {street} Street is (easy|difficult|free after six)."},
    {"s.wait", "They open at {time} and are closed on {weekday}s."},

    {"s.sum", "In total I give {rate.stars}, mainly because of the {staff.name} of the staff."},
    {"s.sum", "Because of {item.name} alone, {rate.back}."},
    {"s.sum", "My verdict is {rate.stars}: {item.name} {rate.was}, and the price was {price.was}."},
    {"s.sum", "For @ {occ.name}, the visit {rate.was}."},
    {"s.sum", "With the {room.name} and the {staff.name} of the team in mind, I decided on "
              "{rate.stars}."},
    {"s.sum", "The price was {price.was}, the staff were {staff.was}, and {item.name} {rate.was}."},
    {"s.sum", "Between the {room.name} and the {staff.name} of the staff, there is a lot to "
              "say about this {kind.name}."},

    {"s.close", "{^rate.back}."},
    {"s.close", "That is why I give {rate.stars}."},
    {"s.close", "So, {rate.stars} from me, and {rate.back}."},
    {"s.close", "To sum up, the visit {rate.was}, and {rate.back}."},
    {"s.close", "My rating for this {kind.name}: {rate.stars}."},
    {"s.close", "If you want @ {kind.name} in {town}, read this first: {rate.stars} and no more."},
    {"s.close", "As far as I am concerned, {rate.back}."},
};

const corpus_domain corpus_review = {
    "review",
    {"Write a review of a restaurant or a service.", "Please write a customer review.",
     "Write what a customer thinks of a restaurant or a shop.", "Produce a fictional review.",
     "Write an opinion about a visit to a restaurant or a workshop."},
    5, attributes, COUNT(attributes), rules, COUNT(rules)};
