//! Natural questions over short texts in five languages: each language by itself, and all of them in one collection.

use toolgate_engine::knowledge::{Collection, Knowledge, NewDocument};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_tools::knowledge::Library;
use uuid::Uuid;

use crate::knowledge::reader;
use crate::world::on_every_store;

/// Texts by id, and questions with the id of the text that answers them. No question repeats a sentence of a text.
struct Language {
    name: &'static str,
    texts: &'static [(&'static str, &'static str)],
    questions: &'static [(&'static str, &'static str)],
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "en",
        texts: &[
            (
                "bread",
                "Baking bread\n\nKnead the dough for ten minutes and let it rise in a warm place until it has doubled. Bake it in a hot oven.",
            ),
            (
                "bike",
                "Flat tyre\n\nTake the wheel off, lever the tyre from the rim, patch the inner tube and pump it up again.",
            ),
            (
                "plants",
                "House plants\n\nMost of them die of too much water. Push a finger into the soil and water only when it is dry.",
            ),
            (
                "passport",
                "Passport office\n\nBring two photographs and your old passport. The new one arrives by post within three weeks.",
            ),
            (
                "boiler",
                "Heating\n\nIf the radiators stay cold, check the pressure of the boiler and bleed the air from the highest radiator.",
            ),
            (
                "library",
                "City library\n\nBooks are lent for four weeks and can be renewed twice. Late returns cost a small fee.",
            ),
            (
                "printer",
                "Office printer\n\nA paper jam is cleared by opening the rear door. Replace the toner when the text becomes pale.",
            ),
            (
                "train",
                "Season tickets\n\nA monthly ticket is valid on all trains and buses of the region. Children travel free.",
            ),
            (
                "cat",
                "Our cat\n\nShe is fed twice a day. The vet has vaccinated her against flu; the certificate is in the drawer.",
            ),
            (
                "router",
                "Wireless network\n\nHold the button of the router for five seconds to restart it. The password is on its label.",
            ),
            (
                "recycling",
                "Waste\n\nGlass goes to the container at the corner, paper is collected on Thursdays.",
            ),
            (
                "pool",
                "Swimming pool\n\nThe pool opens at seven in summer. Swimmers need a cap, lockers take a coin.",
            ),
        ],
        questions: &[
            ("How long does the dough have to be kneaded?", "bread"),
            (
                "What do I do when a tyre of my bike is punctured and needs patching?",
                "bike",
            ),
            ("When should I be watering the plants?", "plants"),
            ("How many photos does one need for a new passport?", "passport"),
            ("Why are my radiators not getting warm?", "boiler"),
            ("Can I renew a book that I borrowed?", "library"),
            ("The paper is jammed in the printer", "printer"),
            ("Where is the proof that the cat got its vaccination?", "cat"),
        ],
    },
    Language {
        name: "de",
        texts: &[
            (
                "brot",
                "Brot backen\n\nDen Teig zehn Minuten kneten und an einem warmen Ort gehen lassen, bis er doppelt so groß ist.",
            ),
            (
                "fahrrad",
                "Platter Reifen\n\nDas Rad ausbauen, den Mantel von der Felge heben, den Schlauch flicken und wieder aufpumpen.",
            ),
            (
                "pflanzen",
                "Zimmerpflanzen\n\nDie meisten gehen an zu viel Wasser ein. Erst gießen, wenn die Erde trocken ist.",
            ),
            (
                "ausweis",
                "Bürgeramt\n\nFür den Ausweis sind zwei Fotos mitzubringen. Er kommt nach drei Wochen mit der Post.",
            ),
            (
                "heizung",
                "Heizung\n\nBleiben die Heizkörper kalt, ist der Druck des Kessels zu prüfen und der oberste Heizkörper zu entlüften.",
            ),
            (
                "bibliothek",
                "Stadtbibliothek\n\nBücher werden für vier Wochen verliehen. Wer sie zu spät zurückgibt, zahlt eine Gebühr.",
            ),
            (
                "drucker",
                "Drucker im Büro\n\nEin Papierstau wird durch die hintere Klappe behoben. Bei blasser Schrift den Toner wechseln.",
            ),
            (
                "strasse",
                "Anwohner\n\nIn unserer Straße darf nur mit Ausweis geparkt werden. Gäste bekommen eine Karte für den Tag.",
            ),
            (
                "katze",
                "Unsere Katze\n\nSie wird zweimal am Tag gefüttert. Der Tierarzt hat sie geimpft, die Bescheinigung liegt in der Schublade.",
            ),
            (
                "router",
                "Funknetz\n\nDie Taste am Router fünf Sekunden drücken, dann startet er neu. Das Kennwort steht auf dem Aufkleber.",
            ),
            (
                "muell",
                "Abfall\n\nGlas kommt in den Behälter an der Ecke, Papier wird donnerstags abgeholt.",
            ),
            (
                "haus",
                "Häuser am See\n\nDie alten Häuser stehen unter Schutz und dürfen nicht umgebaut werden.",
            ),
        ],
        questions: &[
            ("Wie lange muss man den Teig kneten?", "brot"),
            ("Wie flicke ich die Schläuche meines Rades?", "fahrrad"),
            ("Wann soll ich die Pflanzen giessen?", "pflanzen"),
            ("Wie viele Fotos brauche ich für einen neuen Ausweis?", "ausweis"),
            (
                "Was kostet ein Buch, das ich verspätet zurückgebe, an Gebühren?",
                "bibliothek",
            ),
            ("Wo darf ich in der STRASSE parken?", "strasse"),
            (
                "Wer hat die Katzen impfen lassen, und wo ist die Bescheinigung?",
                "katze",
            ),
            ("Darf ein altes Haus umgebaut werden?", "haus"),
        ],
    },
    Language {
        name: "it",
        texts: &[
            (
                "pane",
                "Fare il pane\n\nImpastare per dieci minuti e lasciare lievitare in un luogo caldo finché la pasta raddoppia.",
            ),
            (
                "bici",
                "Gomma a terra\n\nTogliere la ruota, staccare il copertone dal cerchio, riparare la camera d'aria e gonfiarla.",
            ),
            (
                "piante",
                "Piante di casa\n\nMolte muoiono per troppa acqua. Annaffiare solo quando la terra è asciutta.",
            ),
            (
                "passaporto",
                "Ufficio passaporti\n\nServono due fotografie e il vecchio documento. Quello nuovo arriva per posta in tre settimane.",
            ),
            (
                "caldaia",
                "Riscaldamento\n\nSe i termosifoni restano freddi, controllare la pressione della caldaia e far uscire l'aria.",
            ),
            (
                "biblioteca",
                "Biblioteca comunale\n\nI libri si prestano per quattro settimane. Chi li restituisce in ritardo paga una multa.",
            ),
            (
                "stampante",
                "Stampante dell'ufficio\n\nQuando la carta si inceppa, aprire lo sportello posteriore. Sostituire il toner se il testo è pallido.",
            ),
            (
                "treno",
                "Abbonamenti\n\nL'abbonamento mensile vale su tutti i treni e gli autobus della regione.",
            ),
            (
                "gatto",
                "Il nostro gatto\n\nMangia due volte al giorno. Il veterinario lo ha vaccinato, il certificato è nel cassetto.",
            ),
            (
                "rete",
                "Rete senza fili\n\nTenere premuto il tasto del router per cinque secondi per riavviarlo. La password è sull'etichetta.",
            ),
            (
                "rifiuti",
                "Rifiuti\n\nIl vetro va nel contenitore all'angolo, la carta si raccoglie il giovedì.",
            ),
            (
                "piscina",
                "Piscina\n\nLa piscina apre alle sette d'estate. Serve la cuffia, gli armadietti funzionano a moneta.",
            ),
        ],
        questions: &[
            ("Per quanti minuti si deve impastare il pane?", "pane"),
            ("Come si ripara una camera d'aria bucata?", "bici"),
            ("Quando devo annaffiare la pianta?", "piante"),
            ("Quante fotografie servono per il passaporto nuovo?", "passaporto"),
            ("Perche' il termosifone resta freddo?", "caldaia"),
            ("Quale multa pago per un libro restituito tardi?", "biblioteca"),
            ("Dov'è il certificato dei vaccini del gatto?", "gatto"),
            ("Come riavvio il router?", "rete"),
        ],
    },
    Language {
        name: "zh",
        texts: &[
            (
                "mianbao",
                "烤面包\n\n面团揉十分钟，放在温暖的地方发酵，等体积变成两倍再放进烤箱。",
            ),
            (
                "zixingche",
                "自行车爆胎\n\n拆下车轮，把外胎从轮圈上撬开，修补内胎，然后重新打气。",
            ),
            (
                "zhiwu",
                "室内植物\n\n大多数植物是因为浇水太多而死的。泥土干了再浇水。",
            ),
            (
                "huzhao",
                "护照办理\n\n请带两张照片和旧护照。新护照三个星期以内寄到。",
            ),
            (
                "nuanqi",
                "暖气\n\n如果暖气片不热，请检查锅炉的压力，并给最高的暖气片放气。",
            ),
            (
                "tushuguan",
                "市图书馆\n\n图书可以借四个星期，可以续借两次。逾期归还需要付费。",
            ),
            (
                "dayinji",
                "办公室打印机\n\n打开后面的盖子可以取出卡住的纸。字迹变浅时请更换墨粉。",
            ),
            ("yuepiao", "月票\n\n月票可以乘坐本地区所有的火车和公共汽车。"),
            (
                "mao",
                "我们的猫\n\n每天喂两次。兽医已经给它打过疫苗，证明放在抽屉里。",
            ),
            (
                "wangluo",
                "无线网络\n\n按住路由器的按钮五秒钟就会重新启动。密码写在标签上。",
            ),
            ("laji", "垃圾\n\n玻璃放到街角的箱子，废纸每星期四收集。"),
            (
                "youyong",
                "游泳池\n\n夏天早上七点开放。游泳的人要戴泳帽，储物柜需要硬币。",
            ),
        ],
        questions: &[
            ("面团要揉多长时间？", "mianbao"),
            ("怎么修补自行车的内胎？", "zixingche"),
            ("什么时候应该给植物浇水？", "zhiwu"),
            ("办护照需要几张照片？", "huzhao"),
            ("为什么暖气片不热？", "nuanqi"),
            ("借的图书可以续借吗？", "tushuguan"),
            ("猫的疫苗证明在哪里？", "mao"),
            ("如何重新启动路由器？", "wangluo"),
        ],
    },
    Language {
        name: "ja",
        texts: &[
            (
                "pan",
                "パンを焼く\n\n生地を十分間こねて、暖かい場所で二倍になるまで発酵させます。",
            ),
            (
                "jitensha",
                "自転車のパンク\n\n車輪を外し、タイヤをリムから外して、チューブを修理してから空気を入れます。",
            ),
            (
                "shokubutsu",
                "観葉植物\n\n水のやりすぎで枯れることが多いです。土が乾いてから水をやってください。",
            ),
            (
                "ryoken",
                "旅券の窓口\n\n写真を二枚と古い旅券を持ってきてください。新しい旅券は三週間で届きます。",
            ),
            (
                "danbou",
                "暖房\n\n放熱器が冷たいままなら、ボイラーの圧力を確認して空気を抜きます。",
            ),
            (
                "toshokan",
                "市立図書館\n\n本は四週間借りられ、二回まで延長できます。返却が遅れると料金がかかります。",
            ),
            (
                "purinta",
                "事務所のプリンター\n\n紙が詰まったら後ろの扉を開けます。文字が薄くなったらトナーを交換します。",
            ),
            ("teiki", "定期券\n\n定期券は地域のすべての電車とバスで使えます。"),
            (
                "neko",
                "うちの猫\n\n一日に二回えさをやります。獣医が予防接種をしました。証明書は引き出しにあります。",
            ),
            (
                "musen",
                "無線ネットワーク\n\nルーターのボタンを五秒間押すと再起動します。パスワードはラベルに書いてあります。",
            ),
            ("gomi", "ごみ\n\nガラスは角の容器に入れ、紙は木曜日に集めます。"),
            (
                "puru",
                "プール\n\n夏は七時に開きます。泳ぐ人は帽子が必要です。ロッカーには硬貨を使います。",
            ),
        ],
        questions: &[
            ("生地はどのくらいこねればいいですか", "pan"),
            ("自転車のチューブの修理方法を知りたい", "jitensha"),
            ("植物にはいつ水をやればよいですか", "shokubutsu"),
            ("旅券には写真が何枚必要ですか", "ryoken"),
            ("ボイラーの圧力はどうすれば確認できますか", "danbou"),
            ("借りた本の返却を延長できますか", "toshokan"),
            ("プリンターに紙が詰まりました", "purinta"),
            ("ルーターを再起動するには", "musen"),
        ],
    },
];

/// Hits that a search gives.
const FOUND: usize = 3;

fn collection(number: u128) -> Collection {
    Collection {
        project: ProjectId::new(Uuid::from_u128(number)),
        agent: None,
    }
}

async fn put(library: &Library, of: &Collection, language: &Language) {
    for (id, text) in language.texts {
        let document = NewDocument {
            id: format!("{}-{id}", language.name),
            title: None,
            source: None,
            mime: "text/plain".parse().unwrap(),
            data: (*text).into(),
        };
        library.put(of, document, Time(1)).await.unwrap();
    }
}

/// The questions whose text is not among the hits.
async fn missed(library: &Library, of: &Collection, language: &Language) -> Vec<&'static str> {
    let mut missed = Vec::new();
    for (question, id) in language.questions {
        let found = library.search(of, question, FOUND).await.unwrap();
        let wanted = format!("{}-{id}", language.name);
        if !found.iter().any(|hit| hit.document_id == wanted) {
            missed.push(*question);
        }
    }
    missed
}

on_every_store! {
    async fn questions_find_their_texts_in_every_language_and_in_all_at_once(world) {
        let library = Library::new(world.records.clone(), reader());
        for (number, language) in LANGUAGES.iter().enumerate() {
            let alone = collection(100 + number as u128);
            put(&library, &alone, language).await;
            put(&library, &collection(99), language).await;
            assert_eq!(missed(&library, &alone, language).await, [""; 0], "{}", language.name);
        }
        for language in &LANGUAGES {
            assert_eq!(missed(&library, &collection(99), language).await, [""; 0], "{} among others", language.name);
        }
    }
}
