/* pools.c - fictional names, and dates and numbers of a document, shared by all domains; see
 * document_grammar.h. Every eighth of the large pools is held out, with all its endings. Those make
 * thousands of names, so that a model learns to spell one that it has not seen and to repeat it,
 * and not a list. */
#include "corpus/document_grammar.h"

const corpus_rule corpus_pools[] = {
    {"surname",
     "Adler|Barrow|Castell|Dunmore|Ekberg|Farrant|Galloway|Hadley|Ibsen|Jarrow|Kessler|Lindqvist|"
     "Marlow|Norwood|Okafor|Pemberton|Quayle|Renshaw|Sandoval|Tarrant|Underhill|Vasquez|Whitlock|"
     "Yarrow|Zeller|Ashcombe|Brennan|Corrigan|Dalgaard|Ellery|Fontaine|Grantham|Hollis|Ivanov|"
     "Jessop|Kimura|Lockwood|Mendez|Nakata|Osborne|Prescott|Radley|Sorensen|Thackeray|Upton|Voss|"
     "Winslow|Abara|Beckett|Calloway|Draper|Espinoza|Fairley|Goodwin|Haverford|Ingram|Joyce|"
     "Kendrick|Lambert|Mistry|Novak|Oakes|Parrish|Rowntree|Sheridan|Tennant|Valdez|Wexley|"
     "Achebe|Bellamy|Conway|Delgado|Eastman|Fielding|Garrick|Huxley|"
     "Ald{ending}|Amber{ending}|Arling{ending}|Barn{ending}|Beck{ending}|Bex{ending}|"
     "Brad{ending}|Bram{ending}|Brant{ending}|Bright{ending}|Burl{ending}|Cald{ending}|"
     "Carl{ending}|Chal{ending}|Chat{ending}|Clay{ending}|Cran{ending}|Crom{ending}|Dal{ending}|"
     "Darl{ending}|Den{ending}|Dray{ending}|Dun{ending}|East{ending}|Ed{ending}|Elm{ending}|"
     "Farn{ending}|Fen{ending}|Gal{ending}|Gil{ending}|Glad{ending}|Grim{ending}|"
     "Hal{ending}|Ham{ending}|Har{ending}|Hather{ending}|Hazel{ending}|Hol{ending}|Hum{ending}|"
     "Kel{ending}|Ken{ending}|Kil{ending}|Kings{ending}|Lang{ending}|Laver{ending}|Lin{ending}|"
     "Mel{ending}|Mer{ending}|Mil{ending}|Oak{ending}|"
     "Orm{ending}|Pen{ending}|Pres{ending}|Quen{ending}|Ran{ending}|Red{ending}|Rock{ending}|"
     "Sel{ending}|Shel{ending}|Stan{ending}|Strat{ending}|Tal{ending}|Thorn{ending}|Tor{ending}|"
     "Wal{ending}|War{ending}|Wen{ending}|Whit{ending}|Wil{ending}|Win{ending}|Wood{ending}|"
     "Wyn{ending}"},
    {"first",
     "Alice|Bruno|Clara|Daniel|Elena|Felix|Greta|Hugo|Irene|Jonas|Karen|Leo|Maria|Nadia|Oscar|"
     "Paula|Quentin|Rosa|Samuel|Teresa|Victor|Wendy|Yusuf|Zoe|Amir|Bella|Conrad|Dora|Edwin|Fiona|"
     "Gavin|Helen|Isaac|Julia|Kofi|Laura|Martin|Nina|Omar|Priya|Ralph|Sonia|Tomas|Ursula|Vera|"
     "Walter|Xenia|Yvonne|Anton|Beatrice|Cyril|Diana|Ernest|Flora|Gideon|Hannah"},
    {"hospital",
     "Ashgrove|Bayview|Cedar Hill|Dunwich|Eastbrook|Fairmont|Glenwood|Harbour Road|Ironbridge|"
     "Kingsmere|Lakeshore|Millbrook|Northgate|Oakfield|Parkside|Queensway|Ridgeway|Saint Columba|"
     "Thornbury|Westlake|Willow Park|Saint Helier|Moorfield|Riverside|Summerhill|Stonebridge|"
     "Ferndale|Rosewood|Highfield|Beaconsfield|Greenacre|Larkspur"},
    {"town",
     "Aldermoor|Brightwater|Carrow|Denholm|Elmstead|Fenwick|Greyport|Hartwell|Inverley|Juniper Bay|"
     "Kelbrook|Langmere|Maplewood|Netherby|Orchard Falls|Penrose|Quarry Hill|Redcliff|Seabourne|"
     "Tidewater|Upwell|Vineland|Westmarsh|Yarmouth Point|Ashby|Birchwood|Coldstream|Dovecote|"
     "Easterly|Foxhollow|Glenrock|Hazelton|"
     "Birch{town_ending}|Black{town_ending}|Brook{town_ending}|"
     "Copper{town_ending}|Cross{town_ending}|Deer{town_ending}|Eagle{town_ending}|"
     "Fox{town_ending}|Gold{town_ending}|Grey{town_ending}|Hart{town_ending}|Iron{town_ending}|"
     "Kestrel{town_ending}|Lark{town_ending}|Marsh{town_ending}|Moss{town_ending}|"
     "North{town_ending}|Otter{town_ending}|Raven{town_ending}|Silver{town_ending}|"
     "South{town_ending}|Stone{town_ending}|Swan{town_ending}|West{town_ending}|Wolf{town_ending}"},
    {"street",
     "Alder|Bridge|Canal|Dock|Elm|Ferry|Garden|Harbour|Iron|Juniper|King|Lantern|Market|North|"
     "Orchard|"
     "Park|Quarry|River|Station|Temple|Union|Vine|Water|York|Acorn|Bell|Castle|Drake|East|Forge|"
     "Grove|"
     "High"},
    {"place", /* adjective of a restaurant or shop */
     "Golden|Blue|Silver|Little|Old|Crooked|Happy|Quiet|Red|Green|White|Copper|Sunny|Velvet|Wild|"
     "Lucky|Salty|Hidden|Royal|Brass|Rusty|Merry|Gentle|Amber"},
    {"noun",
     "Lantern|Fig|Anchor|Heron|Kettle|Olive|Fox|Table|Garden|Spoon|Barrel|Crane|Thistle|Lemon|Oak|"
     "Pepper|Harbour|Swan|Rooster|Mill|Compass|Clover|Pelican|Bell|Acorn|Tide|Basil|Wagon|Hare|"
     "Stove|"
     "Plum|Robin"},
    {"company",
     "Acorn Systems|Bluefin Labs|Cobalt Works|Delta Harbor|Evergreen Retail|Foxglove Media|"
     "Granite Partners|Helix Foods|Indigo Travel|Juniper Health|Keystone Freight|Lumen Design|"
     "Meridian Bank|Northwind Energy|Orchid Studio|Pinnacle Tools|Quartz Mobile|Ravenna Books|"
     "Summit Outfitters|Tandem Homes|Umbra Security|Vantage Legal|Willow Schools|Zephyr Air|"
     "Amber Clinics|Birch Logistics|Coral Hotels|Dune Motors|Ember Games|Fathom Marine|"
     "Glacier Water|"
     "Hollow Creek Farms"},
    /* What a document repeats as it is. A court case is filed, heard and listed in this order. */
    {"ward", "2|3|4|5|6|7|8|9|10|11|12"},
    {"extension", "{100-999}"},
    {"number", "{1000-9999}"},
    {"day", "{1-28} {month}"},
    {"filed", "{1-28} (January|February|March|April)"},
    {"heard", "{1-28} (May|June|July|August)"},
    {"listed", "{1-28} (September|October|November|December)"},
    {"weekday", "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"},
    {NULL, NULL}};

const corpus_rule corpus_common[] = {
    {"month", "January|February|March|April|May|June|July|August|September|October|November|"
              "December"},
    {"workday", "Monday|Tuesday|Wednesday|Thursday|Friday"},
    {"early", "{8-9}(|:15|:30|:45) in the morning"},
    {"later", "{10-11}(|:15|:30|:45) in the morning"},
    {"afternoon", "{1-5}(|:15|:30|:45) in the afternoon"},
    {"time", "{9-11}(|:15|:30|:45) in the morning|{1-5}(|:15|:30|:45) in the afternoon"},
    {"ending", "bury|by|combe|den|er|field|ford|ham|hurst|ing|land|leigh|low|man|mere|more|ney|row|"
               "sby|shaw|son|stead|ston|ton|wall|ward|way|well|wick|wood|worth"},
    {"town_ending",
     "bank|bridge|brook|bury|by|cliff|dale|field|ford|gate|ham|haven|hill|holm|hurst|"
     "ley|mead|mere|mill|moor|mouth|port|stead|ton|wick|wood"},
    {"count", "two|three|four|five|six"},
    {NULL, NULL}};
