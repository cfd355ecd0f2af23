"""The grammar's French against sentences written and checked by hand, rule by rule; what learners type and read."""

import pytest

from course_lib.data.translation import Clause, NounPhrase, Pronoun, Sentence, realize, translate
from course_lib.data.translation.text import detokenize_french, tokenize_english

# rule | English, which the parser turns into a structure and the grammar writes anew | French
BY_HAND = """
# articles, gender, number, elision
le | she signs the report | elle signe le rapport.
la | she signs the law | elle signe la loi.
les | she signs the laws | elle signe les lois.
l' m. | she signs the agreement | elle signe l'accord.
l' before mute h | he sees the man | il voit l'homme.
le before aspirated h | he sees the hero | il voit le héros.
un | she signs an agreement | elle signe un accord.
une | he sees a school | il voit une école.
a university | he sees a university | il voit une université.
des | she signs some laws | elle signe des lois.
plural of -al | he sees the hospitals | il voit les hôpitaux.
pays has one form | he sees two countries | il voit deux pays.
plusieurs | he sees several women | il voit plusieurs femmes.
# this and these, possessives
ce | she signs this report | elle signe ce rapport.
cet | she signs this agreement | elle signe cet accord.
ce before aspirated h | he sees this hero | il voit ce héros.
cette | he sees this island | il voit cette île.
ces | he sees these islands | il voit ces îles.
ce before an adjective | she signs this new agreement | elle signe ce nouvel accord.
ma | she signs my letter | elle signe ma lettre.
mon f. before a vowel | he sees my school | il voit mon école.
ma before an adjective | he sees my new school | il voit ma nouvelle école.
his and her agree with what is owned | he sees his car | il voit sa voiture.
ses | he sees her friends | il voit ses amis.
nos | he sees our houses | il voit nos maisons.
leur | he sees their house | il voit leur maison.
leurs | he sees their houses | il voit leurs maisons.
# adjectives: place, agreement, forms before a vowel
two after the noun, mirrored | he sees the european economic area | il voit la zone économique européenne.
one before, one after | she signs the new economic agreements | elle signe les nouveaux accords économiques.
one after, one before | she signs the important new law | elle signe la nouvelle loi importante.
bel | he sees the beautiful tree | il voit le bel arbre.
beau | he sees a beautiful country | il voit un beau pays.
belle | he sees the beautiful island | il voit la belle île.
vieil | he sees an old man | il voit un vieil homme.
vieux before aspirated h | he sees an old hero | il voit un vieux héros.
vieux in the plural before a vowel | he sees the old trees | il voit les vieux arbres.
vieille | he sees the old school | il voit la vieille école.
only the last one meets the vowel | he sees a beautiful old hotel | il voit un beau vieil hôtel.
l' before an adjective | he sees the former judge | il voit l'ancien juge.
le before an adjective | he sees the young child | il voit le jeune enfant.
ancienne | he sees the former actress | il voit l'ancienne actrice.
nationaux | she signs the national reports | elle signe les rapports nationaux.
publique | he sees a public school | il voit une école publique.
français has one masculine form | he sees the french ministers | il voit les ministres français.
# de before a plural adjective
de | she signs some new agreements | elle signe de nouveaux accords.
d' | he sees some former ministers | il voit d'anciens ministres.
des before a noun with an adjective after it | she signs some economic agreements | elle signe des accords économiques.
de in the subject | some young women see him | de jeunes femmes le voient.
# du, des, au, aux
du | he sees a member of the committee | il voit un membre du comité.
de l' | he sees the students of the university | il voit les étudiants de l'université.
des from de les | she signs the proposal of the farmers | elle signe la proposition des agriculteurs.
d'un | he sees the president of a bank | il voit le président d'une banque.
du before an adjective | he sees a member of the new government | il voit un membre du nouveau gouvernement.
no du before l' | he sees the car of the old man | il voit la voiture du vieil homme.
de l' before an adjective | he sees the car of the former minister | il voit la voiture de l'ancien ministre.
before the complement | he sees the important members of the bank | il voit les membres importants de la banque.
sur | she signs a report about the problems | elle signe un rapport sur les problèmes.
au | he talks to the judge | il parle au juge.
à la | he talks to the woman | il parle à la femme.
à l' | he talks to the actress | il parle à l'actrice.
aux | he talks to the children | il parle aux enfants.
à l' before mute h | he talks to the man | il parle à l'homme.
au before aspirated h | he talks to the hero | il parle au héros.
# negation
ne pas | she does not sign the law | elle ne signe pas la loi.
n' | they do not adopt the law | ils n'adoptent pas la loi.
de | she does not sign a law | elle ne signe pas de loi.
any | she does not sign any laws | elle ne signe pas de lois.
any with an adjective | she does not sign any economic laws | elle ne signe pas de lois économiques.
past | she did not sign the law | elle n'a pas signé la loi.
past with de | he did not see an old man | il n'a pas vu de vieil homme.
future | she will not sign the law | elle ne signera pas la loi.
never | she never signs a law | elle ne signe jamais de loi.
never in the future | she will never sign the law | elle ne signera jamais la loi.
no de in the subject | a minister does not sign the law | un ministre ne signe pas la loi.
no de after être | this decision is not a problem | cette décision n'est pas un problème.
no de for a recipient | she does not give the book to a child | elle ne donne pas le livre à un enfant.
# pronouns before the verb
les | he sees them | il les voit.
l' | she helps her | elle l'aide.
ne le | he does not see him | il ne le voit pas.
ne l' | they do not invite him | ils ne l'invitent pas.
future | he will see them | il les verra.
participle f. | he saw her | il l'a vue.
participle f. with ne l' | they did not invite her | ils ne l'ont pas invitée.
lui m. | she gives him the letter | elle lui donne la lettre.
lui f., no agreement | she gave her the letter | elle lui a donné la lettre.
leur, de | she does not give them a letter | elle ne leur donne pas de lettre.
lui for to him | he does not talk to him | il ne lui parle pas.
leur for to them | he will talk to them | il leur parlera.
# tenses
past | she signed the law | elle a signé la loi.
past plural, no agreement with the subject | the women wrote a letter | les femmes ont écrit une lettre.
future plural | they will buy a house | ils achèteront une maison.
irregular future | she will send the letter to the judge | elle enverra la lettre au juge.
doubled letter | he will reject the proposal | il rejettera la proposition.
# to be
agreement f. | the law is important | la loi est importante.
agreement f. pl. | the laws were new | les lois étaient nouvelles.
no nouvel after the noun | the agreement is new and he signs the agreement | l'accord est nouveau et il signe l'accord.
she | she was old | elle était vieille.
pour | the law is important for the farmers | la loi est importante pour les agriculteurs.
they | they are not young | ils ne sont pas jeunes.
future | the meeting will be difficult | la réunion sera difficile.
future negated | the meetings will not be long | les réunions ne seront pas longues.
# adverbs
souvent | she often writes a letter | elle écrit souvent une lettre.
between auxiliary and participle | she always helped him | elle l'a toujours aidé.
after être | the answer is often strange | la réponse est souvent étrange.
yesterday | he saw her yesterday | il l'a vue hier.
# places and seasons
en | she signs the law in may | elle signe la loi en mai.
au printemps | she signs the law in spring | elle signe la loi au printemps.
dans | he sees him in the old city | il le voit dans la vieille ville.
à l' | he sees him at the hospital | il le voit à l'hôpital.
avant | he sees him before the european elections | il le voit avant les élections européennes.
# clauses
qu' | he says that she is rich | il dit qu'elle est riche.
parce qu' | she signs the law because they help her | elle signe la loi parce qu'ils l'aident.
s'il | she will sign the law if he sees her | elle signera la loi s'il la voit.
s'ils | she will sign the law if they see her | elle signera la loi s'ils la voient.
si elle | he will see her if she signs the law | il la verra si elle signe la loi.
three clauses | he says that he did not see her when he was old | il dit qu'il ne l'a pas vue quand il était vieux.
# as a learner types
typed | The European Economic Area is important. | la zone économique européenne est importante.
her before a noun | He sees her letter | il voit sa lettre.
her | He gives her the letter | il lui donne la lettre.
won't | They won't talk to her new friend at the hospital! | ils ne parleront pas à son nouvel ami à l'hôpital.
"""

# each French word with its English words
LINKED = """
he sees the european economic area | il:he voit:sees la:the zone:area économique:economic européenne:european
she does not sign the law | elle:she ne:not signe:sign pas:not la:the loi:law
she did not sign the law | elle:she n':not a:did pas:not signé:sign la:the loi:law
she signed the law | elle:she a:signed signé:signed la:the loi:law
she will sign the law | elle:she signera:will+sign la:the loi:law
she never signs any laws | elle:she ne:never signe:signs jamais:never de:any lois:laws
he sees a member of the committee | il:he voit:sees un:a membre:member du:of+the comité:committee
he talks to them | il:he leur:to+them parle:talks
she gives him the book | elle:she lui:him donne:gives le:the livre:book
he talks to the judge | il:he parle:talks au:to+the juge:judge
they will be old | ils:they seront:will+be vieux:old
he sees her in spring | il:he la:her voit:sees au:in printemps:spring
he is old because he sees her | il:he est:is vieux:old parce:because qu':because il:he la:her voit:sees
"""


def rows_of(table):
    return [row.split(" | ") for row in table.strip().splitlines() if not row.startswith("#")]


@pytest.mark.parametrize(
    ("english", "french"), [pytest.param(*both, id=f"{both[0]}: {rule}") for rule, *both in rows_of(BY_HAND)]
)
def test_the_grammar_writes_what_was_checked_by_hand(english, french):
    pair = translate(english)  # None if the grammar does not write this English
    assert detokenize_french(pair.french) == french


@pytest.mark.parametrize(("english", "expected"), rows_of(LINKED))
def test_gold_links_follow_the_conventions(english, expected):
    pair = translate(english)
    linked = [
        f"{word}:{'+'.join(pair.english[i] for i in sorted(i for i, k in pair.alignment if k == j))}"
        for j, word in enumerate(pair.french)
    ]
    assert " ".join(linked) == expected + " .:."


def test_combinations_reach_across_the_verb():
    assert translate("the european law is important").combinations == {("law", "european"), ("law", "important")}


OF_SOME = ("of", NounPhrase(noun="woman", determiner="a", plural=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verb": "paint"}, "no verb 'paint'"),
        ({"object": NounPhrase(noun="unicorn")}, "no noun 'unicorn'"),
        ({"object": NounPhrase(noun="law", adjectives=("green",))}, "no adjective 'green'"),
        ({"subject": Pronoun(word="it")}, "no subject pronoun 'it'"),
        ({"object": Pronoun(word="it")}, "no object pronoun 'it'"),
        ({"tense": "pluperfect"}, "'pluperfect'"),
        ({"frequency": "often", "negation": "not"}, "not both"),
        ({"object": Pronoun(word="them"), "tense": "past"}, "hides its gender"),
        ({"object": NounPhrase(noun="law", determiner="two")}, "needs a plural noun"),
        ({"object": NounPhrase(noun="car", complement=OF_SOME)}, '"of some" is not covered'),
        ({"verb": "say", "negation": "not"}, "without a negation"),
        ({"conjunctions": ("and",)}, "1 clauses need 0 conjunctions"),
    ],
)
def test_what_the_grammar_does_not_cover_is_named(change, message):
    signs = {"subject": Pronoun(word="she"), "verb": "sign", "object": NounPhrase(noun="law")} | change
    conjunctions = signs.pop("conjunctions", ())
    with pytest.raises(ValueError, match=message):
        realize(Sentence(clauses=(Clause(**signs),), conjunctions=conjunctions))


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "She doesn't give her friend's letter",
        "She sign the law",
        "She signs an law",
        "They saw them",
        "my friend",
        "He says",
        "He says and she is rich",
        "He signs the law that she is rich",
    ],
)
def test_what_the_grammar_does_not_cover_is_not_translated(typed):
    assert translate(typed) is None


@pytest.mark.parametrize(
    ("typed", "tokens"),
    [
        ("The European Economic Area", "the european economic area ."),
        ("  They don't sign it!  ", "they do not sign it ."),
        ("She doesn't see him.", "she does not see him ."),
        ("He didn\N{RIGHT SINGLE QUOTATION MARK}t, he won't", "he did not he will not ."),
        ("They're old; he's not", "they are old he is not ."),
        ("she'll sign", "she will sign ."),
        ('the "new" law?', "the new law ."),
        ("l'accord 42", "l'accord 42 ."),
        *((empty, "") for empty in ("", "   ", "?!", "'")),
    ],
)
def test_typed_text_becomes_tokens(typed, tokens):
    assert tokenize_english(typed) == tuple(tokens.split())


@pytest.mark.parametrize(
    ("tokens", "text"),
    [("il dit qu' elle part aujourd'hui .", "il dit qu'elle part aujourd'hui."), ("l' île", "l'île"), ("", "")],
)
def test_french_tokens_become_text(tokens, text):
    assert detokenize_french(tokens.split()) == text
