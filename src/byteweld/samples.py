"""One sentence in many languages, to compare its number of tokens in each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# All are translations of the same sentence:
# "The little boat came home before the rain, and nobody asked where it had been."
SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "English": "The little boat came home before the rain, and nobody asked where it had been.",
        "Spanish": "El pequeño barco volvió a casa antes de la lluvia, y nadie preguntó dónde había estado.",
        "French": "Le petit bateau est rentré avant la pluie, et personne n'a demandé où il avait été.",
        "German": "Das kleine Boot kam vor dem Regen nach Hause, und niemand fragte, wo es gewesen war.",
        "Italian": "La piccola barca tornò a casa prima della pioggia, e nessuno chiese dove fosse stata.",
        "Portuguese": "O pequeno barco voltou para casa antes da chuva, e ninguém perguntou onde ele tinha estado.",
        "Dutch": "Het bootje kwam voor de regen thuis, en niemand vroeg waar het was geweest.",
        "Swedish": "Den lilla båten kom hem före regnet, och ingen frågade var den hade varit.",
        "Polish": "Mała łódka wróciła do domu przed deszczem i nikt nie zapytał, gdzie była.",
        "Czech": "Malá loďka se vrátila domů před deštěm a nikdo se neptal, kde byla.",
        "Finnish": "Pieni vene tuli kotiin ennen sadetta, eikä kukaan kysynyt, missä se oli ollut.",
        "Hungarian": "A kis hajó az eső előtt hazaért, és senki sem kérdezte, hol járt.",
        "Turkish": "Küçük tekne yağmurdan önce eve döndü ve kimse nerede olduğunu sormadı.",
        "Vietnamese": "Chiếc thuyền nhỏ về nhà trước cơn mưa, và không ai hỏi nó đã ở đâu.",
        "Indonesian": "Perahu kecil itu pulang sebelum hujan, dan tidak ada yang bertanya di mana ia tadi berada.",
        "Swahili": "Mashua ndogo ilirudi nyumbani kabla ya mvua, na hakuna aliyeuliza ilikuwa wapi.",
        "Greek": "Η μικρή βάρκα γύρισε σπίτι πριν από τη βροχή, και κανείς δεν ρώτησε πού ήταν.",
        "Russian": "Маленькая лодка вернулась домой до дождя, и никто не спросил, где она была.",
        "Ukrainian": "Маленький човен повернувся додому перед дощем, і ніхто не спитав, де він був.",
        "Hebrew": "הסירה הקטנה חזרה הביתה לפני הגשם, ואיש לא שאל היכן הייתה.",
        "Arabic": "عاد القارب الصغير إلى البيت قبل المطر، ولم يسأل أحد أين كان.",
        "Persian": "قایق کوچک پیش از باران به خانه برگشت و هیچ‌کس نپرسید کجا بوده است.",
        "Hindi": "छोटी नाव बारिश से पहले घर लौट आई, और किसी ने नहीं पूछा कि वह कहाँ थी।",
        "Bengali": "ছোট নৌকাটি বৃষ্টির আগে বাড়ি ফিরে এল, আর কেউ জিজ্ঞাসা করল না সে কোথায় ছিল।",
        "Tamil": "சிறிய படகு மழைக்கு முன் வீடு திரும்பியது, அது எங்கே இருந்தது என்று யாரும் கேட்கவில்லை.",
        "Thai": "เรือลำเล็กกลับบ้านก่อนฝนตก และไม่มีใครถามว่ามันไปไหนมา",
        "Chinese": "小船在下雨前回了家，没有人问它去过哪里。",
        "Japanese": "小さな舟は雨の前に家に帰り、どこにいたのか誰も聞かなかった。",
        "Korean": "작은 배는 비가 오기 전에 집으로 돌아왔고, 어디에 있었는지 아무도 묻지 않았다.",
    }
)
