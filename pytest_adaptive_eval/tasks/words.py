"""Common words by length, without anagrams of each other, and words that look like them or like the lexicon's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType


def by_first_word(rows: str) -> Mapping[str, tuple[str, ...]]:
    """Return the further words of each row by its first word; commas separate the rows."""
    others_by_word = {}
    for row in rows.split(","):
        word, *others = row.split()
        others_by_word[word] = tuple(others)
    return MappingProxyType(others_by_word)


_BY_LENGTH = (
    "SKY BUS CUP DOG EGG FAN GUM HEN INK JAM KEY LIP MUD NUT OAK PIE RUG SUN TOY VAN WEB YAK ZIP ICE BOX FLY",
    "BIRD CAKE DESK FISH GOLD HAND IRON JUMP KITE LAMP MOON NECK OVEN PARK QUIZ ROOF SHIP TREE UNIT VASE WOLF YARD"
    " ZERO BOOK DUCK FROG",
    "APPLE BREAD CLOUD DANCE EAGLE FLUTE GRASS HOUSE IVORY JUICE KNIFE LEMON MUSIC NIGHT OLIVE PIANO QUEEN RIVER"
    " SUGAR TABLE UNCLE VOICE WHEAT YOUTH ZEBRA CHAIR",
    "ANCHOR BASKET CANDLE DRAGON ENGINE FLOWER GUITAR HAMMER ISLAND JACKET KITTEN LADDER MARKET NEEDLE ORANGE PENCIL"
    " RABBIT SILVER TUNNEL VALLEY WINDOW YELLOW ZIPPER BRIDGE COTTON PUZZLE",
    "BALCONY CABINET DIAMOND EVENING FEATHER GALLERY HARVEST ICEBERG JOURNEY KITCHEN LIBRARY MORNING NETWORK OCTOPUS"
    " PYRAMID RAINBOW SCIENCE THUNDER UNIFORM VILLAGE WHISTLE BLANKET COMPASS DOLPHIN GIRAFFE LANTERN",
    "AIRPLANE BACKPACK CALENDAR DAUGHTER ELEPHANT FOUNTAIN GARDENER HOSPITAL INVASION JUNCTION KEYBOARD LANGUAGE"
    " MOUNTAIN NOTEBOOK OPERATOR PAINTING QUESTION RAILROAD SANDWICH TREASURE UMBRELLA VACATION WATERWAY BUILDING"
    " CHAMPION DINOSAUR",
)

#: Words by their length, in a fixed order.
WORDS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {len(words.split()[0]): tuple(words.split()) for words in _BY_LENGTH}
)

# From the lexicon of wordfreq, without names and abbreviations, see benchmarks/anagrams.py.
_SAME_LETTERS = (
    "BUS SUB, DOG GOD, GUM MUG, INK KIN, NUT TUN, OAK KOA OKA, SUN NUS UNS, VAN NAV, YAK KAY, DESK KEDS,"
    " IRON NOIR INRO, LAMP PALM, MOON MONO, SHIP HIPS PISH, TREE RETE, VASE SAVE AVES, WOLF FLOW FOWL,"
    " YARD DRAY, BOOK KOBO, APPLE APPEL, BREAD BARED BEARD DEBAR ARDEB, CLOUD COULD, DANCE CANED DECAN,"
    " LEMON MELON, NIGHT THING, OLIVE VOILE, SUGAR ARGUS GAURS, TABLE BLEAT ABLET, ANCHOR ARCHON RANCHO,"
    " FLOWER FOWLER REFLOW, ORANGE ONAGER, SILVER LIVERS LIVRES SLIVER, GALLERY ALLERGY LARGELY REGALLY,"
    " KITCHEN THICKEN, GARDENER GARNERED"
)

#: Other English words with the letters of a word of `WORDS`.
ANAGRAMS = by_first_word(_SAME_LETTERS)


# From the large English list of wordfreq, words of a Zipf frequency of at least 2, see benchmarks/masked_words.py.
_DIFFERENCES = (
    "lantern 5 6 11 25 33 42 52 56 65 72 98 100 112, basket 1 6 8 32, hammer 1 2 4 8 32, blanket 5 10 25 51 54 56 64, "
    "mirror 3 10 13 22 25 28 34 36 41 48, kettle 1 2 12 24 52, candle 1 6 12 20 24 40 48, ladder 1 4 8 34 48, violin "
    "3 5 9 12 22 34 48, compass 7 11 13 14 28 40 48 70 72 80 96, bottle 1 2 4 48, ticket 1 12 32, wallet 1 2 24 32, "
    "pillow 1 14 34 44 48, shovel 3 6 12 21 25 32, bucket 2 5 9 12 32, notebook 7 13 85 89 101 107 115 124 147 149 "
    "156 177 182 184 197 203 206 214 232 240, umbrella 7 28 51 113 147 149 174 185 206 217 227 229 230 233 240, scarf "
    "3 6 10 12 16, helmet 5 9 14 16 32, trumpet 1 28 52 58 64, puzzle 1 12 50, bracelet 11 14 55 71 93 112 135 137 "
    "138 144 165 172 204 225 232, envelope 3 5 94 102 116 120 128, magnet 3 5 12 24 33 36 40 48, thermos 15 19 21 25 "
    "30 41 46 49 54 56 75 80 96, kitchen 7 25 28 32 65 66 88, cellar 1 2 12 40 48, garage 1 14 22 24 38 48, library 7 "
    "13 27 30 46 53 54 56 72 83 85 97 102 114, attic 2 5 20 24, stable 3 8 22 32, bakery 1 6 20 32, harbour 1 30 54 "
    "56 76 88 96, tower 1 4 16, chapel 6 8 21 33 48, museum 7 11 13 14 19 24 37 38 41 42 44 50 52, workshop 5 57 62 "
    "73 110 155 171 174 176 204 224, barn 1 2 4 8, orchard 3 13 14 38 58 60 81 86 92 97 100 112, tunnel 1 10 12 22 "
    "32, balcony 5 30 41 44 51 52 56 65 70 74 76 88 100 104 114, station 3 6 20 24 41 44 76 96, pharmacy 15 55 59 61 "
    "62 87 88 97 147 154 157 171 174 181 182 185 197 202 209 210 240, theatre 11 23 29 30 35 42 44 49 50 56 71 77 78 "
    "89 90 92 96, laundry 3 21 25 30 45 46 49 60 70 90 92 96, farmer 1 2 4 8 32, teacher 1 2 28 64, sailor 1 4 10 18 "
    "34 40 48, doctor 3 4 24 41 42 49 50, painter 1 2 4 64, neighbour 59 61 223 235 237 238 243 245 246 249 252 287 "
    "311 316 349 355 365 377 384, gardener 11 13 16 35 37 41 44 129 166 168 192, butcher 1 6 12 24 66 68, captain 6 "
    "11 13 20 48 69 89 100 104, student 3 14 38 42 56 70 76 90 112, singer 1 2 8 32, plumber 1 16 64, rabbit 3 5 12 "
    "17 26 32, donkey 1 6 10 12 34 36 40, parrot 1 2 24 36 40 48, squirrel 31 47 54 79 87 94 107 110 115 122 143 151 "
    "155 158 160 214 216, elephant 5 22 25 51 58 60 90 107 131 134 169 184 202 220 242, monkey 1 6 10 12 24 34 36 40, "
    "tortoise 9 30 44 49 71 78 81 90 92 114 120 151 154 156 182 214 216 227 229 230 234 240, hedgehog 59 61 103 117 "
    "118 121 122 124 150 155 156 160 205 213, carried 1 2 12 56 64, borrowed 2 13 33 44 56 128, painted 1 2 28 44 64, "
    "dropped 1 4 24 64, noticed 3 5 14 24 54 64, repaired 3 12 25 26 36 40 49 128, followed 1 14 58 60 118 128, "
    "measured 5 9 14 28 49 52 120 128, covered 1 4 16 96, admired 6 10 12 19 20 64, polished 3 6 13 41 53 56 128, "
    "visited 3 5 6 25 60 73 90 92 96, described 3 58 61 77 85 88 104 112 256, ignored 3 14 22 24 53 64, counted 1 6 8 "
    "64, found 1 6 8 16, pushed 1 10 12 32, lifted 1 2 4 32, examined 11 14 23 39 45 50 52 128, mentioned 5 9 51 62 "
    "90 99 102 113 124 286 312 362 370 372 398 404 410 417 426 428 465 482 488 496, walked 1 6 8 32, travelled 7 11 "
    "13 53 62 96 201 220 256, wandered 1 2 124 128, hurried 1 2 24 64, jumped 1 10 12 32, climbed 5 12 17 18 20 24 "
    "64, sailed 1 2 12 36 48, crawled 5 8 19 20 64, danced 3 5 9 10 12 17 32, waited 1 4 8 32, heavy 1 8 16, broken 3 "
    "5 6 9 12 24 32, yellow 1 14 28 40 48, wooden 1 4 8 32, ancient 6 13 25 26 43 53 60 75 83 85 92 99 100 105 106 "
    "113 114 120, clever 4 10 19 25 32, gentle 3 5 9 14 17 20 24 32, hungry 2 9 24 44 48, narrow 1 30 38 40 50, "
    "purple 3 5 6 9 10 12 17 24 40 52, shiny 1 2 12 16, frozen 5 9 12 26 35 36 42 49 56, famous 7 9 12 19 20 24 35 36 "
    "49, lonely 3 4 9 17 26 48, noisy 3 5 9 12 16, curious 1 6 24 42 44 50 98 104 116, elegant 11 13 14 22 24 39 44 "
    "64, dusty 1 6 8 16, orange 1 14 16 38 44, striped 10 12 16 39 64, quietly 7 11 19 24 53 85 96, slowly 11 13 14 "
    "19 22 24 35 38 41 42 48, suddenly 14 39 45 59 60 71 77 91 99 117 118 121 182 186 194 197 201 204 209 212 248, "
    "proudly 9 23 28 49 56 81 88 96, carefully 7 13 53 57 58 89 90 92 115 188 246 248 283 305 310 312 357 362 364 372 "
    "403 409 412 427 469 472 481 486 496, rarely 1 6 12 24 48, gladly 3 6 9 10 24 48, politely 7 19 29 30 45 46 53 57 "
    "58 60 77 89 97 116 120 141 150 153 161 184 197 198 201 204 209 216 224, calmly 5 10 22 25 28 41 44 48, secretly "
    "25 30 39 43 45 46 53 54 56 75 77 78 87 99 106 113 114 192, bravely 1 10 28 32 88, nearly 1 8 16, behind 5 12 19 "
    "20 24 35 36 49, inside 1 6 12 20 24 48, beside 1 4 18 24, near 1 2 4 8, under 1 2 4 24, above 3 6 8 18, across "
    "10 12 18 20 25 35 38 49, beyond 5 12 20 25 26 34 36 41 49, every 1 2 16, while 1 4 8 18, because 8 19 21 48 71 "
    "101, before 5 12 20 25 26 33 34 56, then 1 2 4 8, with 1 2 4 8"
)

#: Minimal sets of positions at which other English words differ from a word, as bits, the first position the lowest.
#: Letters that are visible in each of the sets fit no other word.
DIFFERENCES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {word: tuple(map(int, sets)) for word, sets in by_first_word(_DIFFERENCES).items()}
)

_SAME_LETTERS = (
    "thermos mothers smother, kitchen thicken, cellar recall caller, attic tacit, stable tables, tower wrote,"
    " barn bran, theatre theater, farmer framer, teacher cheater hectare, painter pertain repaint,"
    " gardener garnered, student stunted, singer resign reigns signer, parrot raptor, ignored eroding redoing,"
    " sailed ladies ideals, dusty study, near earn, across oscars, with whit"
)

#: Other English words with the letters of a word of the lexicon, names left out.
SAME_LETTERS = by_first_word(_SAME_LETTERS)


_CLASSES = {
    "THING": "lantern basket hammer blanket mirror kettle candle ladder violin compass bottle ticket wallet pillow"
    " shovel bucket notebook umbrella scarf helmet trumpet puzzle bracelet envelope magnet thermos",
    "PLACE": "kitchen cellar garage library attic stable bakery harbour tower chapel museum workshop barn orchard"
    " tunnel balcony station pharmacy theatre laundry",
    "BEING": "farmer teacher sailor doctor painter neighbour gardener butcher captain student singer plumber rabbit"
    " donkey parrot squirrel elephant monkey tortoise hedgehog",
    "DID": "carried borrowed painted dropped noticed repaired followed measured covered admired polished visited"
    " described ignored counted found pushed lifted examined mentioned",
    "WENT": "walked travelled wandered hurried jumped climbed sailed crawled danced waited",
    "LIKE": "heavy broken yellow wooden ancient clever gentle hungry narrow purple shiny frozen famous lonely noisy"
    " curious elegant dusty orange striped",
    "HOW": "quietly slowly suddenly proudly carefully rarely gladly politely calmly secretly bravely nearly",
    "WHERE": "behind inside beside near under above across beyond",
}

#: Words of each class, in a fixed order.
WORD_CLASSES = MappingProxyType({name: tuple(words.split()) for name, words in _CLASSES.items()})
FUNCTION_WORDS = ("the", "and", "every", "one", "while", "because", "before", "then", "with")

#: Every word that a sentence can hold, in small letters.
LEXICON: tuple[str, ...] = (*chain.from_iterable(WORD_CLASSES.values()), *FUNCTION_WORDS)

TEMPLATES = tuple(
    tuple(template.split())
    for template in (
        "the LIKE BEING HOW DID the LIKE THING WHERE the PLACE",
        "every BEING DID one THING and then WENT WHERE the LIKE PLACE",
        "the BEING WENT HOW because one LIKE BEING DID the THING",
        "one BEING with the LIKE THING WENT WHERE the PLACE while the LIKE BEING DID the THING",
        "before the BEING DID the LIKE THING the LIKE BEING HOW WENT WHERE one PLACE",
        "the LIKE THING and the LIKE THING waited WHERE every LIKE PLACE",
        "HOW the BEING DID every LIKE THING WHERE the PLACE and DID the BEING",
    )
)


def compose(rng: random.Random, sentences: int) -> list[list[str]]:
    """Draw sentences as lists of words in small letters."""
    text = []
    for _ in range(sentences):
        words = []
        for slot in rng.choice(TEMPLATES):
            if slot in WORD_CLASSES:
                words.append(rng.choice(WORD_CLASSES[slot]))
            else:
                words.append(slot)
        text.append(words)
    return text
