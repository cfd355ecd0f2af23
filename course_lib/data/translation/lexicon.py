"""The word lists of the English-to-French grammar, written for this course.

Every list is keyed by its English word. A noun has *kinds*; adjectives and verbs name the kinds that they
go with, so that ministers sign laws and nobody paints a decision red.
"""

from dataclasses import dataclass

# ---------------------------------------------------------------------------------------------- nouns


@dataclass(frozen=True, kw_only=True)
class Noun:
    """A noun with both plurals, its French gender and the kinds of thing that it names."""

    singular: str
    plural: str
    french_singular: str
    french_plural: str
    feminine: bool
    kinds: frozenset[str]


_NOUNS = """
minister    ministers     ministre       ministres       m  person adult actor role chosen
president   presidents    président      présidents      m  person adult actor role chosen
judge       judges        juge           juges           m  person adult actor role chosen
teacher     teachers      professeur     professeurs     m  person adult actor role chosen
student     students      étudiant       étudiants       m  person adult actor role chosen
farmer      farmers       agriculteur    agriculteurs    m  person adult actor role chosen
member      members       membre         membres         m  person adult actor role unowned chosen
friend      friends       ami            amis            m  person adult actor role chosen
actress     actresses     actrice        actrices        f  person adult actor role chosen
hero        heroes        héros          héros           m  person adult actor
man         men           homme          hommes          m  person adult actor unowned
woman       women         femme          femmes          f  person adult actor unowned
child       children      enfant         enfants         m  person actor small
committee   committees    comité         comités         m  body actor public political economic
government  governments   gouvernement   gouvernements   m  body actor political unowned
country     countries     pays           pays            m  body actor area place unowned
bank        banks         banque         banques         f  body actor public
company     companies     entreprise     entreprises     f  body actor public
university  universities  université     universités     f  body actor building at place
report      reports       rapport        rapports        m  text policy matter topic signed written
letter      letters       lettre         lettres         f  text matter art topic signed written
newspaper   newspapers    journal        journaux        m  text goods political matter topic economic
book        books         livre          livres          m  text goods matter art topic written chosen
story       stories       histoire       histoires       f  text matter art topic written
answer      answers       réponse        réponses        f  text political matter topic written
agreement   agreements    accord         accords         m  rule policy matter topic stance signed
law         laws          loi            lois            f  rule policy matter topic stance signed written
proposal    proposals     proposition    propositions    f  rule policy matter topic stance signed
decision    decisions     décision       décisions       f  rule policy matter topic stance
project     projects      projet         projets         m  plan policy big matter art topic stance chosen
idea        ideas         idée           idées           f  plan policy matter art topic stance
problem     problems      problème       problèmes       m  plan policy big matter topic
success     successes     succès         succès          m  success topic policy big
meeting     meetings      réunion        réunions        f  event political public unowned topic economic
election    elections     élection       élections       f  event political unowned topic
area        areas         zone           zones           f  area economic public place unowned
city        cities        ville          villes          f  area place unowned chosen
island      islands       île            îles            f  area place unowned
school      schools       école          écoles          f  building at civic place
house       houses        maison         maisons         f  building goods coloured place
hospital    hospitals     hôpital        hôpitaux        m  building at civic place
hotel       hotels        hôtel          hôtels          m  building goods place chosen
tree        trees         arbre          arbres          m  thing
car         cars          voiture        voitures        f  thing goods coloured chosen
"""


def _read_nouns() -> dict[str, Noun]:
    nouns = {}
    for line in _NOUNS.strip().splitlines():
        singular, plural, french_singular, french_plural, gender, *kinds = line.split()
        nouns[singular] = Noun(
            singular=singular,
            plural=plural,
            french_singular=french_singular,
            french_plural=french_plural,
            feminine=gender == "f",
            kinds=frozenset(kinds),
        )
    return nouns


NOUNS = _read_nouns()

# ----------------------------------------------------------------------------------------- adjectives


@dataclass(frozen=True, kw_only=True)
class Adjective:
    """An adjective with its four French forms, its place beside the noun and the kinds that it describes."""

    english: str
    masculine: str
    masculine_before_vowel: str  # "nouvel accord"; the same as `masculine` for most
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_noun: bool  # in French
    rank: int  # English order: opinion 0, size 1, age 2, colour 3, origin 4, field 5
    predicative: bool  # "the law is important", but not "the minister is former"
    kinds: frozenset[str]

    def french(self, *, feminine: bool, plural: bool) -> str:
        """The form that agrees with a noun of this gender and number."""
        if feminine:
            return self.feminine_plural if plural else self.feminine
        return self.masculine_plural if plural else self.masculine


# English, m., m. before a vowel, f., m. pl., f. pl., side, rank, predicative?, kinds
_ADJECTIVES = """
good        bon         =      bonne        bons         bonnes        pre  0 no  person building matter
important   important   =      importante   importants   importantes   post 0 yes person body topic
difficult   difficile   =      difficile    difficiles   difficiles    post 0 yes topic
strange     étrange     =      étrange      étranges     étranges      post 0 yes person body area thing topic
interesting intéressant =      intéressante intéressants intéressantes post 0 yes area topic
famous      célèbre     =      célèbre      célèbres     célèbres      post 0 yes person body text place
beautiful   beau        bel    belle        beaux        belles        pre  0 yes thing place art
big         grand       =      grande       grands       grandes       pre  1 yes body thing big place
small       petit       =      petite       petits       petites       pre  1 yes body thing big small place
long        long        =      longue       longs        longues       pre  1 yes text event
new         nouveau     nouvel nouvelle     nouveaux     nouvelles     pre  2 yes role body thing place topic
old         vieux       vieil  vieille      vieux        vieilles      pre  2 yes adult thing matter place
young       jeune       =      jeune        jeunes       jeunes        pre  2 yes person
former      ancien      =      ancienne     anciens      anciennes     pre  2 no  role
rich        riche       =      riche        riches       riches        post 2 yes person body area
red         rouge       =      rouge        rouges       rouges        post 3 yes coloured
black       noir        =      noire        noirs        noires        post 3 yes coloured
european    européen    =      européenne   européens    européennes   post 4 no  person body place topic
french      français    =      française    français     françaises    post 4 no  person body place topic
economic    économique  =      économique   économiques  économiques   post 5 no  policy economic
political   politique   =      politique    politiques   politiques    post 5 no  policy political
national    national    =      nationale    nationaux    nationales    post 5 no  body policy event civic
public      public      =      publique     publics      publiques     post 5 no  civic public
"""


def _read_adjectives() -> dict[str, Adjective]:
    adjectives = {}
    for line in _ADJECTIVES.strip().splitlines():
        english, m, vowel, f, m_plural, f_plural, side, rank, predicative, *kinds = line.split()
        adjectives[english] = Adjective(
            english=english,
            masculine=m,
            masculine_before_vowel=m if vowel == "=" else vowel,
            feminine=f,
            masculine_plural=m_plural,
            feminine_plural=f_plural,
            before_noun=side == "pre",
            rank=int(rank),
            predicative=predicative == "yes",
            kinds=frozenset(kinds),
        )
    return adjectives


ADJECTIVES = _read_adjectives()

# ---------------------------------------------------------------------------------------------- verbs


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb in the third person: present, past (French passé composé with avoir) and future.

    `pattern` is "direct" (signs the law), "double" (gives the letter to the judge, gives him the letter) or
    "to" (talks to the judge, parle au juge). `subjects` and `objects` are kinds of nouns or nouns.
    """

    base: str
    third: str
    past: str
    french_singular: str
    french_plural: str
    participle: str
    future_stem: str
    pattern: str
    subjects: frozenset[str]
    objects: frozenset[str]

    def english_present(self, *, plural: bool) -> str:
        """signs, or sign with a plural subject."""
        return self.base if plural else self.third

    def french_present(self, *, plural: bool) -> str:
        """signe, or signent with a plural subject."""
        return self.french_plural if plural else self.french_singular

    def french_future(self, *, plural: bool) -> str:
        """signera, or signeront with a plural subject."""
        return self.future_stem + ("ont" if plural else "a")

    def agreeing_participle(self, *, feminine: bool) -> str:
        """The participle after a preceding direct object: vu, or vue for "her"."""
        return self.participle + ("e" if feminine else "")


# base third past | il, ils, participle, future stem | pattern | subjects | objects
_VERBS = """
sign    signs    signed   | signe    signent     signé    signer   | direct | actor  | signed
adopt   adopts   adopted  | adopte   adoptent    adopté   adopter  | direct | body   | rule project report
study   studies  studied  | étudie   étudient    étudié   étudier  | direct | person | matter area
write   writes   wrote    | écrit    écrivent    écrit    écrir    | direct | person | written
see     sees     saw      | voit     voient      vu       verr     | direct | person | place person thing
help    helps    helped   | aide     aident      aidé     aider    | direct | actor  | person
invite  invites  invited  | invite   invitent    invité   inviter  | direct | actor  | person
defend  defends  defended | défend   défendent   défendu  défendr  | direct | actor  | person stance
choose  chooses  chose    | choisit  choisissent choisi   choisir  | direct | actor  | chosen
reject  rejects  rejected | rejette  rejettent   rejeté   rejetter | direct | actor  | stance answer
examine examines examined | examine  examinent   examiné  examiner | direct | actor  | report letter rule plan
visit   visits   visited  | visite   visitent    visité   visiter  | direct | person | place
buy     buys     bought   | achète   achètent    acheté   achèter  | direct | actor  | goods
give    gives    gave     | donne    donnent     donné    donner   | double | actor  | text car
send    sends    sent     | envoie   envoient    envoyé   enverr   | double | actor  | text agreement
show    shows    showed   | montre   montrent    montré   montrer  | double | actor  | matter thing building
talk    talks    talked   | parle    parlent     parlé    parler   | to     | person | person
"""

# verbs that only introduce a clause with "that", in the present
REPORTING_VERBS = {"say": ("says", "say", "dit", "disent"), "think": ("thinks", "think", "pense", "pensent")}


def _read_verbs() -> dict[str, Verb]:
    verbs = {}
    for line in _VERBS.strip().splitlines():
        english, french, pattern, subjects, objects = (field.split() for field in line.split("|"))
        base, third, past = english
        singular, plural, participle, future_stem = french
        verbs[base] = Verb(
            base=base,
            third=third,
            past=past,
            french_singular=singular,
            french_plural=plural,
            participle=participle,
            future_stem=future_stem,
            pattern=pattern[0],
            subjects=frozenset(subjects),
            objects=frozenset(objects),
        )
    return verbs


VERBS = _read_verbs()

# ------------------------------------------------------------------------------------- function words

# French determiners: masculine singular, feminine singular, plural. None: the determiner has no such form.
DETERMINERS: dict[str, tuple[str | None, str | None, str | None]] = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),  # English: a, an; some; any after a negation
    "this": ("ce", "cette", "ces"),  # English: this; these
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
    "two": (None, None, "deux"),
    "several": (None, None, "plusieurs"),
}

# English subject pronoun: French, feminine, plural. "They" is always ils.
SUBJECT_PRONOUNS = {"he": ("il", False, False), "she": ("elle", True, False), "they": ("ils", False, True)}
# English object pronoun: French direct object, French recipient
OBJECT_PRONOUNS = {"him": ("le", "lui"), "her": ("la", "lui"), "them": ("les", "leur")}

NEGATIONS = {"not": "pas", "never": "jamais"}
FREQUENCIES = {"often": "souvent", "always": "toujours", "rarely": "rarement"}
TIMES = {"today": "aujourd'hui", "yesterday": "hier", "tomorrow": "demain"}
TIME_TENSES = {"today": ("present", "future"), "yesterday": ("past",), "tomorrow": ("future",)}
# months and seasons, said with "in": the French preposition and name
SEASONS = {
    "march": ("en", "mars"),
    "may": ("en", "mai"),
    "june": ("en", "juin"),
    "october": ("en", "octobre"),
    "winter": ("en", "hiver"),
    "spring": ("au", "printemps"),
}
PREPOSITIONS = {
    "in": "dans",
    "at": "à",
    "to": "à",
    "with": "avec",
    "for": "pour",
    "before": "avant",
    "after": "après",
    "of": "de",
    "about": "sur",
}
# "of" and "about": which nouns take which complements (kinds or nouns)
COMPLEMENTS = {
    "of": {
        "member": ("committee", "government", "university"),
        "president": ("country", "bank", "company", "university", "committee"),
        "student": ("university", "school"),
        "city": ("country", "island"),
        "law": ("country", "government"),
        "decision": ("committee", "minister", "president", "judge", "company"),
        "proposal": ("committee", "minister", "president", "government", "farmer"),
        "car": ("person",),
    },
    "about": {
        "report": ("body", "rule", "problem", "election"),
        "book": ("person", "area", "election"),
        "story": ("person", "area"),
        "letter": ("rule", "plan", "event"),
    },
}
CONJUNCTIONS = {
    "and": ("et",),
    "but": ("mais",),
    "because": ("parce", "que"),
    "when": ("quand",),
    "if": ("si",),
    "that": ("que",),
}
# être: il, ils; the past of a state is the imparfait
BE = {
    "present": (("is", "are"), ("est", "sont")),
    "past": (("was", "were"), ("était", "étaient")),
    "future": (("will", "will"), ("sera", "seront")),
}
AVOIR = ("a", "ont")

# ---------------------------------------------------------------------------------------------- sound

_VOWELS = frozenset("aeiouâàéèêëîïôûùœ")
ASPIRATED_H = frozenset({"héros"})  # le héros, but l'homme
# letters and sounds part ways: a university, an hour
_ENGLISH_CONSONANT_SOUND = frozenset({"university", "universities", "european"})


def french_vowel_sound(word: str) -> bool:
    """True if a French word makes the one before it elide: l'accord, l'homme, but le héros."""
    return word[0] in _VOWELS or (word[0] == "h" and word not in ASPIRATED_H)


def english_vowel_sound(word: str) -> bool:
    """True if an English word takes "an": an important law, but a european law."""
    return word[0] in "aeiou" and word not in _ENGLISH_CONSONANT_SOUND


def fits(noun: Noun, kinds: frozenset[str] | tuple[str, ...]) -> bool:
    """True if the noun is named in `kinds`, itself or through one of its kinds."""
    return noun.singular in kinds or not noun.kinds.isdisjoint(kinds)
