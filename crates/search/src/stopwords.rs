//! Words that say nothing about what a text is about. They tell its language, and a question is searched without them.
//! They are spelled as in print: `ändere` is not `andere`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::fold::plain;
use crate::language::Language;

/// A set of languages: one bit each.
pub(crate) type Languages = u32;

/// The languages that a word is a stop word of; `lower` has its accents, `folded` has not. A word with accents must be
/// spelled as in the list, one without may have lost them on a keyboard that has none.
pub(crate) fn languages_of(lower: &str, folded: &str) -> Languages {
    let table = if lower == folded { &TABLES.1 } else { &TABLES.0 };
    table.get(lower).copied().unwrap_or(0)
}

/// Stop words as spelled, and folded.
static TABLES: LazyLock<(HashMap<String, Languages>, HashMap<String, Languages>)> = LazyLock::new(|| {
    let mut tables: (HashMap<_, _>, HashMap<_, _>) = Default::default();
    for (language, words) in WORDS {
        for word in words.split_whitespace() {
            *tables.0.entry(word.to_owned()).or_insert(0) |= language.bit();
            *tables.1.entry(plain(word)).or_insert(0) |= language.bit();
        }
    }
    tables
});

/// Phrases of Chinese questions. Chinese has no spaces, so they are looked for in runs of characters.
pub(crate) const HAN_PHRASES: [&str; 38] = [
    "为什么",
    "什么样",
    "怎么样",
    "怎么办",
    "怎么",
    "怎样",
    "如何",
    "什么",
    "哪个",
    "哪些",
    "哪里",
    "哪儿",
    "多少",
    "多长",
    "多久",
    "请问",
    "可以",
    "能够",
    "能否",
    "是否",
    "是不是",
    "有没有",
    "我们",
    "你们",
    "他们",
    "我的",
    "你的",
    "一个",
    "一些",
    "一台",
    "这个",
    "那个",
    "这些",
    "那些",
    "或者",
    "已经",
    "還是",
    "還有",
];

/// Chinese characters that are mostly grammar. Inside a word they are not, so they count less instead of nothing.
pub(crate) const HAN_WEAK: &str = "的了吗呢吧啊着是在和与及或并把被对从到给让使要想会能有我你他她它这那个们都也就还又很几些中上下里来去进行";

const WORDS: [(Language, &str); 15] = [
    (
        Language::English,
        "a about above after again against all also am an and any are aren as at be because been before being below \
         between both but by can cannot could couldn did didn do does doesn doing don down during each few for from \
         further had hadn has hasn have haven having he her here hers herself him himself his how however i if in into \
         is isn it its itself just ll me might more most must my myself no nor not of off on once only or other our ours \
         ourselves out over own please re same shall she should shouldn so some such tell than that the their theirs \
         them themselves then there these they this those through to too under until up upon us ve very was wasn we \
         were weren what when where whether which while who whom whose why will with won would wouldn you your yours \
         yourself yourselves want wants certain given way need",
    ),
    (
        Language::German,
        "aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei \
         beim bin bis bist da dabei damit dann das dass dasselbe dazu dein deine deinem deinen deiner dem den denn der \
         deren des dessen die dies diese dieselbe diesem diesen dieser dieses dir doch dort du durch ein eine einem \
         einen einer eines einige einigen einiger er es etwas euch euer eure für gegen gerade gewesen gibt hab habe \
         haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist \
         ja jede jedem jeden jeder jedes jene jetzt kann kannst kein keine keinem keinen keiner können könnte lasse \
         machen man manche mein meine meinem meinen meiner mich mir mit muss musste nach nicht nichts noch nun nur ob \
         oder ohne sehr sein seine seinem seinen seiner selbst sich sie sind so solche soll sollen sollte sondern sonst \
         um über und uns unser unsere unter viel viele vom von vor während wann war waren warum was weg weil weiter welche \
         welchem welchen welcher welches wenn wer werde werden wie wieder will wird wir wo wollen wurde wurden zu zum \
         würde zur zwar zwischen bitte möchte",
    ),
    (
        Language::Italian,
        "a abbia abbiamo ad agli ai al alcun alcuna alcuni alcuno all alla alle allo anche ancora avere aveva avuto c \
         che chi ci ciò come con contro cosa così cui d da dagli dai dal dall dalla dalle dallo dei degli del dell della \
         delle dello di dov dove due e ecco ed era erano essa esse essere essi esso faccio fare fa fatto fra gli ha \
         hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio ne negli nei nel nell nella nelle \
         nello no noi non nostra nostre nostri nostro o od ogni oppure per perché perciò però più poi possa posso \
         possono prima proprio può quale quali quando quanta quante quanti quanto quella quelle quelli quello questa \
         queste questi questo qui se sei senza si sia siamo siano sono sta stata state stati stato su sua sue sugli sui \
         sul sull sulla sulle sullo suo suoi tale tali tra tu tua tue tuo tuoi tutti tutto un una uno v vi voglio voi \
         vorrei vostra vostro devo deve sapere",
    ),
    (
        Language::French,
        "a ai alors au aucun aussi autre aux avant avec avez avoir avons c ça car ce ceci cela celle ces cet cette ceux \
         chaque chez ci comme comment d dans de depuis des donc dont du elle elles en encore entre es est et étaient \
         était étant être eu faire fait faut font ici il ils j je jusque l la laquelle le lequel les lesquels leur \
         leurs lors lui ma mais me même mes moi mon n ne ni nos notre nous on ont ou par parce pas peu peut peux plus \
         pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si soi soit son sont \
         sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une veux voici vos votre vous y",
    ),
    (
        Language::Spanish,
        "a al algo algún alguna algunas algunos ante antes aquel aquella así aun aunque cada como con contra cual cuales \
         cuando cuanto de debe debo del desde donde dos el ella ellas ello ellos en entre era eran es esa esas ese eso \
         esos esta estaba estan estar estas este esto estos estoy fue fueron ha hace hacer hacia han has hasta hay he la \
         las le les lo los más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros \
         para pero poco por porque pueda puede pueden puedo que quien quienes quiero se sea según ser si sido sin sobre \
         sois solo son soy su sus también tan tanto te tengo tiene tienen toda todas todo todos tu tus un una unas uno \
         unos y ya yo",
    ),
    (
        Language::Portuguese,
        "a ainda algum alguma ao aos apenas aquela aquele as até cada com como contra da das de dela dele depois desde do \
         dos e ela elas ele eles em entre era eram essa essas esse esses esta estão estar estas este estes estou eu faço \
         fazer foi foram há isso isto já la lhe mais mas me mesmo meu meus minha muito na não nas nem no nos nossa nosso \
         num numa o onde os ou para pela pelas pelo pelos pode podem por porque posso preciso qual quais quando quanto \
         que quem quero são se seja sem ser seu seus só sobre sua suas também te tem tenho ter todo todos tu tua um uma \
         umas uns você vocês",
    ),
    (
        Language::Dutch,
        "aan al alle als altijd andere ben bij daar dan dat de der deze die dit doch doe doen door dus een eens en er ge \
         geen geweest haar had heb hebben heeft hem het hier hij hoe hun iets ik in is ja je kan kon kunnen kunt maar me \
         meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen \
         tot u uit uw van veel voor waarom waar wanneer want waren was wat welk welke werd wie wil worden wordt zal ze \
         zelf zich zij zijn zo zonder zou",
    ),
    (
        Language::Swedish,
        "alla allt att av bli blir blev då där de dem den denna deras dess dessa det detta dig din dina ditt du efter ej \
         eller en er era ett från för gör ha hade han hans har hennes henne hon honom hur har i icke in inom inte jag ju \
         kan kunde man med mellan men mig min mina mitt mot mycket när ni någon något några nu och om oss på så samma sedan \
         sig sin sina sitt själv ska skulle som till under upp ut utan vad var vara varför vart vem vi vid vilka vilken \
         vilket är åt över",
    ),
    (
        Language::Danish,
        "af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter eller \
         en end er et for fra ham han hans har havde hende hendes her hos hun hvad hvis hvor hvordan hvorfor hvilken i \
         ikke ind jeg jer jo kan kunne man mange med meget men mig min mine mit mod ned når noget nogle nu og også om op \
         os over på selv sig sin sine sit skal skulle som sådan til ud under var vi vil ville vor være været",
    ),
    (
        Language::Norwegian,
        "alle at av bare begge ble blei bli blir da de deg dei dem den denne der dere deres det dette di din disse du \
         eller en er et etter for fordi fra fram ha hadde han hans har hennes henne her ho hun hva hvem hver hvilke \
         hvilken hvis hvor hvordan hvorfor i ikke inn jeg kan kunne man mange med meg meget mellom men mer min mitt mot \
         mye nå når ned noe noen og også om opp oss over på så samme seg selv si sin sitt skal skulle slik som til ut \
         uten var våre vi vil ville vårt være vært",
    ),
    (
        Language::Finnish,
        "ei eikä ela eli en ennen enemmän eniten et että hän hänen häntä he heidän hyvin ilman itse ja johon joita joka \
         jolla jonka jos jossa joten jotka jotta kaikki kanssa kun kuin kuinka kuka kukin kyllä me mihin mikä mikäli miksi \
         millä milloin minä minkä minun missä mistä mitä miten mitkä mutta mutta myös ne niiden niin niitä nuo nyt ole \
         olen olet oli olisi olivat olla on ovat pitää saa se sen sinä sitä siis siinä sitten taas tai tämä tämän tässä \
         tätä te toinen vaan vai vain voi voin voiko vuoksi",
    ),
    (
        Language::Romanian,
        "a aceasta aceea aceia acel acest acesta acestea acestei acestui acolo adica al ale alta alte am ar are as asa \
         asta asupra at atunci au avea că care cat cate către ce cea cei cel cele cine cu cum da dacă dar de deci despre \
         din dintre doar după e ea ei el ele era este eu face fără fi fie fiecare fost iar ii il in inainte între isi la \
         le li lor lui mai mă mea mei mele meu mi nici noi nostru nu o ori până pe pentru peste poate pot prin să sale \
         sau se și sunt sub tot toate toti un una unde unei unor unui vă vom voi vor",
    ),
    (
        Language::Hungarian,
        "a abban ahhoz ahogy ahol aki akik akkor alatt amely amelyek ami amit az azok azon azonban azt aztán azzal be \
         belül benne de e eddig egész egy egyes egyik ehhez el ellen előtt első én ennek és ez ezek ezen ezt ezzel fel \
         hanem hiszen hogy hogyan hol ide igen ill is ismét itt jó jól kell ki különböző le legyen lehet lesz lett \
         majd már meg melyik mely mert mi miért mikor milyen minden mindig mint mit most nagy ne néha nekem nem neki \
         nincs ő oda ok olyan ott össze pedig persze s saját sem semmi sok számára szerint szinte talán tehát teljes \
         több tovább tud úgy ugyanis után utána vagy vagyok valaki valami van vannak volt voltak",
    ),
    (
        Language::Turkish,
        "ama ancak artık asla aslında az bana bazı belki ben beni benim bile bir biraz birçok biri birşey biz bize bizim \
         bu buna bunda bundan bunlar bunu bunun burada çok çünkü da daha de defa değil diğer diye dolayı en fakat gibi \
         göre hangi hem hep hepsi her hiç için ile ise işte kadar kendi ki kim kimse mi mu nasıl ne neden nerede nereye \
         niye o olan olarak oldu olur ona ondan onlar onu onun orada oysa sadece sanki sen senin siz sizin sonra şu \
         tarafından tüm ve veya ya yani yerine yine yok zaten",
    ),
    (
        Language::Russian,
        "а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее если \
         есть еще же за здесь и из или им их к как какая какой какие ко когда которая которые который кто ли либо лучше \
         мне может можно мой мы на над надо нам нас не него нее нет ни них но ну о об однако он она они оно от очень \
         по под после потому почему при про с сам свой себя со так такой там тебя тем то того тоже той только том ты у \
         уже хочу хотя чего чей чем что чтобы чье эта эти это этой этом этот я",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::lower;

    fn is_german(word: &str) -> bool {
        let lower = lower(word);
        languages_of(&lower, &plain(&lower)) & Language::German.bit() != 0
    }

    #[test]
    fn accents_tell_words_apart_where_they_are_written() {
        assert!(is_german("andere") && !is_german("ändere"));
        assert!(is_german("für") && is_german("fur"));
    }
}
