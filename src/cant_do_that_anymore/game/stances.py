"""Classify the stance of a text on each move it mentions: chosen, rejected, hypothetical, named."""

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import pairwise

import chess

from .mentions import Mention
from .reply_text import any_case


class Stance(Enum):
    """The stance of a text on a move.

    Attributes:
        REJECTED: the text says that the move is illegal, or that it does not play it.
        ASIDE: the move is an example, a condition, a consequence or the opponent's.
        DOUBTFUL: the text considers the move among others, or asks about it.
        PLAIN: the text only names the move.
        CHOSEN: the text says that it plays the move.
    """

    REJECTED = auto()
    ASIDE = auto()
    DOUBTFUL = auto()
    PLAIN = auto()
    CHOSEN = auto()


_SENTENCE_END = re.compile(r"[.!?]+(?=[\s\"')\]]|$)|\n+")
_CLAUSE_END = any_case(
    r"[,;:()\[\]]|\s-+\s|[-=]>|\b(?:but|so|therefore|thus|hence|then|however|because|since|while"
    r"|whereas|and (?=I\b|we\b|instead\b|therefore\b|thus\b|so\b|play\b|will\b))"
)
_FORBIDDEN = (
    r"illegal|impossible|forbidden|invalid|unavailable|disallowed|prohibited|banned|unplayable"
    r"|no longer|against the rules|out\b(?= of the question| now|[^\w ]|$)|off the table|ruled out"
    r"|rejected|gone|violat\w+|contradict\w+|used to"
    r"|not (?:actually |even |now |currently |a |an |any |strictly |anymore |really )*"
    r"(?:legal|allowed|possible|permitted|valid|available|playable|option|move\b|choice)"
)
# Adjectives of the rules before the change.
OLD = (
    "standard|normal|regular|ordinary|usual|traditional|classical|conventional|orthodox|original"
    "|old|real"
)
_OLD_RULES = (
    r"(?:normal|usual|ordinar|typical|habit|tradition|instinct)\w*|otherwise|temp(?:ted|ting|tation)"
    rf"|(?:{OLD}) (?:chess|rules|move|play|game)"
)
_OLD_SCOPE = any_case(
    r"(?:[^.!?\n;]{0,40}?\b(?:in|under|by|with|for) (?:the |a )?|[ (\[]*)"
    rf"(?:{OLD})\b|[^.!?\n;,]{{0,20}}\bwhat (?:I|one)(?:'d| would)\b"
)
_REJECTED_BEFORE = any_case(
    r"\b(?:forbids?|prohibits?|rules? out|excludes?|disregard\w*|ignor(?:e|ing)|no way to|miss"
    r"|give up|statt|anstatt|au lieu de|en lugar de|en vez de|invece di"
    r"|вместо|not(?! only)|never|\w+n't|cannot|instead of|rather than|in place of|unlike|neither"
    r"|nor|avoid(?:s|ing)?|anything but|skip|refrain\w*|love to|wrong to|without|unable to|except"
    r"|would have|would've|wanted to|hoped to|meant to|intended to|planned to|was going to"
    r"|about to play|used to|wish|reject\w*|discard\w*|dismiss\w*|abandon\w*|forget|can no longer"
    rf"|initially|originally|at first|excluding|{_FORBIDDEN}|{_OLD_RULES})\b"
    r"|(?<!\bI )(?<!\bwe )\bwould (?:play|have|go)\b|\b(?:no|over)\s+$"
)
_LABELED_REJECTED = any_case(
    r"\b(?:illegal|rejected|forbidden|not (?:legal|allowed|possible)|wrong|avoid|previously"
    r"|standard)(?: moves?| chess| rules)?[\"']?\s*:\W*$|\banything but\W*$"
)
_SUPPOSED_CHOICE = re.compile(
    rf"(?:\b(?:if|were)\b.*\b(?:would|could)\b|\b(?:{_OLD_RULES})\b)"
    r"(?!.*\b(?:so|but|here|instead|therefore|now|however)\b)",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN_NO = (
    r"ist (?:nicht|illegal|verboten|unmöglich)|nicht (?:mehr )?(?:erlaubt|legal|möglich)|n'est"
    r"|est (?:illégal|interdit|impossible)|(?:es|é) ilegal|no es|è illegale|non è|不|非法|违法|違法"
    r"|禁|反則|запрещ|нельзя|невозмож|não é|mag niet|niet meer|불가"
)
_FILLER = (
    r"(?:(?:but|however|yet|though|although|unfortunately|sadly|alas|which|that|this|it|both|all"
    r"|(?:the )?move|here|now|also|again|actually|obviously|clearly|simply|just|then|is|'s|are|was"
    r"|were|has|have|had|been|be|being|become|becomes|became|seems|appears|would|will|can|does|to"
    r"|a|an|still|currently|strictly|technically|as|in fact|of course|therefore"
    r"|already|double step|two squares|two steps|diagonal|bishop|one|and(?! not)|thus|tempting"
    r"|natural|nice|attractive)\b[^\w.!?\n]*)"
)
_REJECTED_AFTER = any_case(
    rf"[ \t\"'\])+#]*[?!,;:=>-]*[ \t]*[(\[]?[ \t]*(?:{_FILLER}{{0,7}}?(?:{_FORBIDDEN}"
    rf"|would(?! like)(?! be (?:illegal|forbidden|impossible|not))|can't"
    r"|cannot(?! be (?:answered|met|refused|stopped|taken|challenged))|isn't(?! affected| a bishop)"
    r"|wasn't|aren't|won't|wouldn't|doesn't(?! jump| break| violate| involve| move| use)|couldn't"
    r"|violates|breaks|contradicts|was my (?:plan|idea|first|intention)|wait\b|oops"
    rf"|if\b|no[,.!:-]|hmm|scratch|I mean\b|{_FOREIGN_NO})"
    rf"|{_FILLER}{{1,7}}?not\b(?! only| just| an? | the best| very| affected"
    r"| changed))|[\s\"')\]]*[❌✗✘🚫⛔]"
)
_REJECTED_NEXT = any_case(
    r"[\s\"')\]+#.!?]*[(\[]?\s*"
    r"(?:(?:(?:hmm|oh|ah|no|but|actually)\W+)?(?:wait(?! for)|oops|scratch that|correction|hold on"
    r"|on second thought|no[,.!-]|sorry|I meant?\b|edit\b|make that)"
    rf"|(?:(?:hmm|actually|but|now|oh|ah|sorry|unfortunately|however)\W+)?(?:{_FORBIDDEN})"
    r"|(?:(?:hmm|actually|but|however|unfortunately|sorry|oh|ah)\W+)?"
    r"(?:that|this|it|which|the move|that move|this move)"
    rf"(?:(?:'s| is| was| would be| has become)(?: now| actually| also| of course)*"
    rf" (?:{_FORBIDDEN})|(?: isn't| wasn't| can't| cannot| won't)(?: be)?"
    r" (?:a )?(?:legal|allowed|possible|permitted|valid|played|done|an option)))"
)
_TAKEN_BACK = any_case(
    r"\b(?:wait(?! for)|hold on|scratch that|on second thought|oops|correction|my mistake"
    r"|let me correct|(?:that|this|it)(?:'s| is) (?:illegal|not legal|not allowed|forbidden))\b"
)
_BUT_NEXT = any_case(r"[\s\"')\]]*[,;.]?[\s-]*(?:but|however|except)\b")
_BUT_FORBIDDEN = any_case(
    rf"[^.!?\n]*\b(?:but|however|though)\b[^.!?\n]*\b(?:{_FORBIDDEN}|forbids?|prohibits?|\w+n't|cannot)"
)
_ASIDE = (
    r"if|unless|whether|once|when|before|eg|(?:moves?|look|one|something) like(?! (?:a )?knight)"
    r"|after(?! (?:careful|analy|consider|evaluat|review|think|look|reflect|some|much|all|a\b))"
    r"|for example|for instance|such as|example"
    r"|threat\w*|allow\w*|followed by|follow up|prepar\w*|plan\w*|later|next|eventually|expect\w*"
    r"|anticipat\w*|respon(?:d|ds|se|ding) to|repl(?:y|ies|ying) to|in response|answer to|against"
    r"|you|your|they|their|he|his|opponent\w*|then|previous\w*|last|earlier|idea of|future|enabl\w*"
    r"|potential\w*|support\w*|than|stop\w*|prevent\w*|legal moves?(?= *(?:are|include|:))"
    r"|format|options? of|chance of"
)
_DOUBT_BEFORE = any_case(
    r"\b(?:could|might|may|can|perhaps|maybe|possib\w*|consider\w*|candidate\w*|option\w*|also|or"
    r"|alternativ\w*|either|like|compare\w*|looking|thought|think\w* about|tried|between)\b"
)
_DOUBT_AFTER = any_case(
    r"[\"')\]]*\?|[\s\"')\]]*(?:(?:is|was|are|were|looks|seems|could|might) )?"
    r"(?:also|another|possible|an option|tempting|an alternative|playable|interesting|or)\b"
)
_VERB = (
    r"(?:play(?:ed|ing)?|cho(?:ose|osing|se|sen)|select(?:ed|ing)?|pick(?:ed)?|go(?:ing)?"
    r"|mak(?:e|ing)|made|mov(?:e|ed|ing)|opt(?:ed|ing)?|decid(?:e|ed)|respond|answer|reply|continue"
    r"|try|recommend|suggest|captur(?:e|ing)|take|castle|push|advance|develop|attempt|submit"
    r"|proceed|settled?|prefer|promote|start|open|begin|bring|retreat|place|execut(?:e|ed))"
)
_CHOICE = any_case(
    r"(?P<speaker>\b(?:I|we)(?:'ll| will| shall|'m| am|'d| would|'ve| have| must| should)?"
    r"(?: (?:going|like|want|need|have|choose|decide|decided|chose|opt|now|then|therefore|thus"
    r"|hence|instead|simply|just|finally|to|also|still|tentatively|again|only|be))*"
    rf" {_VERB}\b|\blet(?:'s| us| me)(?: \w+)? {_VERB}\b"
    r"|\bmy (?:reply|answer|response|move|choice|pick)\b[^.!?\n]{0,30}?\bis\b"
    r"|\b(?:ich (?:spiele|ziehe|wähle)|je joue|je choisis|juego|muevo|gioco)\b)"
    r"|\b(?:best|strongest|right|correct|legal|safest|only|better|chosen|final|reasonable|good)"
    r" (?:\w+ ){0,2}?(?:move|choice|answer|option|reply|response|continuation|alternative)\b"
    r"[^.!?\n]{0,30}?\b(?:is|be|seems|remains)\b"
    r"|(?P<connective>\b(?:so|therefore|thus|hence|instead(?! of)|accordingly|consequently|also"
    r"|donc)\b(?! as\b| far\b| is\b| are\b| does\b| do\b)"
    r"|\b(?:new rules|this variant|this game|these rules|now|here|legal)\s*:|(?P<arrow>[-=]>))"
    r"|\bgoing with\b|^\W*(?:play|push|move|answer)\b"
)
_PREDICATE = any_case(
    r"[\s\"')\]]*(?:is|are|was|were|will|would|can|could|has|looks|seems|might|may|does|fails|loses"
    r"|no|makes)\b(?! (?:my|the) (?:move|choice|answer))"
)
_TAKEN_AFTER = any_case(
    r"[\s\"')\]]*(?:it is|instead|then it is|is (?:my|the) (?:move|choice|answer))\b"
)
_LAST_PART = re.compile(r".*\b(?:with|by|is)\b|.*:", re.IGNORECASE | re.DOTALL)
_SHORT_REST = any_case(
    r"(?:\W|\b(?:with|for|to|decide on|settle on|my|the|a|move|pawn|[a-h]-pawn"
    r"|king's|queen's|forward|up|simply|just|instead|now|here|I|I'll|I'd|play|push|go|will|by|two"
    r"|one|squares?|legal|solid|quiet|safe|simple|central|rather)\b|\d)*"
)
_JUDGED = any_case(
    r"[\s\"')\]]*(?:is|are|was|were|has|have|had|must|might|may|could|should|needs?|can|would|drops"
    r"|falls|goes|fails)\b"
)
_PRAISED = any_case(
    r"[\s\"')\]]*(?:is|was) (?:also |still |clearly |simply |just |now |my |the |an? )*"
    r"(?:legal|best|strong\w*|good|great|fine|well|natural|solid|active|develop\w+|move|choice"
    r"|answer)\b"
)
_NUMBER_AT_END = re.compile(r"\d+\)+\s*$")
_NEGATION = any_case(
    rf"\b(?:not|no|never|\w+n't|cannot|without|forbid\w*|old|rules?|{_FORBIDDEN}|{_OLD_RULES}"
    rf"|aber|mais|pero|mas|maar|но)\b|但|{_FOREIGN_NO}"
)
_IF = any_case(r"\b(?:if|whether)\W+(?:the move\W+)?$")
_ENDS = re.compile(
    r"[\"')\]+#]*(?:[.!?]|\n|$|[ ]?[(:;]|[ ]-|,(?! ?(?:and )?[a-h][1-8])"
    r"|[ ](?:since|because|as|to|rather|instead|over|not|is (?:best|my|the))\b)"
)
_JOINED = any_case(r"[\s\"'(),/&=:]*(?:(?:or|nor|and|ie|in|uci|notation|san|move)\b[\s\"'(),/:]*)*")
_OR = any_case(r"\b(?:or|nor|and)\b|/")


class StanceAnalysis:
    """A text with the moves it mentions, and its stance on each.

    Args:
        text: the text.
        mentions: the moves it mentions.
        opponent: the side that is not to move, "white" or "black".
    """

    def __init__(self, text: str, mentions: Sequence[Mention], opponent: str) -> None:
        self.text, self.mentions = text, mentions
        self._aside = any_case(rf"\b(?:{_ASIDE}|{opponent})\b")
        self._begin, self._before, self._after = self._surroundings()
        self.stances: list[Stance] = []
        for index in range(len(mentions)):
            self.stances.append(self._stance(index))
        self._propagate_rejections()
        self._last_rejected = {
            mention.move: index
            for index, mention in enumerate(mentions)
            if self.stances[index] is Stance.REJECTED
            and (not mention.weak or self._is_rejected_after(index))
        }

    def _surroundings(self) -> tuple[list[int], list[str], list[str]]:
        """Return the start of each mention's sentence, and the text before and after it."""
        begin, before, after = [], [], []
        ends = _SENTENCE_END.finditer(self.text)
        end, sentence, last, last_strong = next(ends, None), 0, 0, 0
        for mention in self.mentions:
            while end and end.end() <= mention.start:
                sentence, end = end.end(), next(ends, None)
            begin.append(sentence)
            start = max(sentence, last if mention.weak else last_strong)
            text = self.text[max(start, mention.start - 200) : mention.start]
            before.append(_NUMBER_AT_END.sub("", text))
            last = mention.end
            last_strong = last_strong if mention.weak else last
        following = len(self.text)
        for mention in reversed(self.mentions):
            after.append(self.text[mention.end : min(following, mention.end + 150)])
            following = following if mention.weak else mention.start
        return begin, before, after[::-1]

    def _stance(self, index: int) -> Stance:
        before, after = self._before[index], self._after[index]
        clause = _CLAUSE_END.split(before)[-1]
        if _REJECTED_BEFORE.search(clause) or _SUPPOSED_CHOICE.search(before.split(";")[-1]):
            return Stance.REJECTED
        if _LABELED_REJECTED.search(before):
            return Stance.REJECTED
        if _IF.search(clause) or self._is_rejected_after(index):
            return Stance.REJECTED
        if self._is_chosen(index, clause):
            return Stance.CHOSEN
        place = self.mentions[index].start
        sentence = self.text[max(self._begin[index], place - 200) : place]
        part = re.split(r";|\s-+\s", sentence)[-1]
        alone = not re.search(r"[^\W\d]", part) and _ENDS.match(after)
        if self._aside.search(before) or self._is_asked(index, before):
            return Stance.ASIDE
        if self.mentions[index].weak and not alone and not self._is_left(index, sentence):
            return Stance.ASIDE
        doubtful = _DOUBT_BEFORE.search(before) or _DOUBT_AFTER.match(after)
        return Stance.DOUBTFUL if doubtful else Stance.PLAIN

    def _is_left(self, index: int, sentence: str) -> bool:
        """Whether a bare square is called a move, or is what remains: "Since Bb5 is out, d4."."""
        if re.search(r"\bmove\W*$", sentence):
            return True
        if not re.search(r"[,:;]\s*$", sentence):
            return False
        if not re.match(r"[\"')+#]*(?:[.!]|\n|$)", self._after[index]):
            return False
        return any(
            stance is Stance.REJECTED and self.mentions[earlier].start >= self._begin[index]
            for earlier, stance in enumerate(self.stances)
        )

    def _is_chosen(self, index: int, clause: str) -> bool:
        mention, before, after = self.mentions[index], self._before[index], self._after[index]
        if _TAKEN_AFTER.match(after) and not re.search(r"[^\W\d]", clause):
            return True
        verb = mention.text.split()[0] if mention.weak else ""  # "I castle kingside"
        choices = list(_CHOICE.finditer(before + verb))
        if not choices or _DOUBT_AFTER.match(after):
            return False
        choice = choices[-1]
        if choice["connective"] and _PREDICATE.match(after):
            return False
        subject = _CLAUSE_END.split(before[: choice.start()])[-1]
        if not (choice["speaker"] or choice["arrow"]) and self._aside.search(subject):
            return False
        rest = before[choice.end() :]
        if mention.weak and not _SHORT_REST.fullmatch(rest):
            return False
        return len(rest) <= 90 and not self._aside.search(_LAST_PART.sub("", rest))

    def _is_asked(self, index: int, before: str) -> bool:
        """Whether the mention is part of a question of more words than the move."""
        place = self.mentions[index].end
        end = _SENTENCE_END.search(self.text, place, place + 300)
        rest = self.text[place : end.end()] if end else ""
        return "?" in rest and bool(re.search(r"[^\W\d]", before + rest))

    def _is_rejected_after(self, index: int) -> bool:
        after = self._after[index]
        rejected = _REJECTED_AFTER.match(after) or _REJECTED_NEXT.match(after)
        if rejected:  # "illegal in standard chess" says nothing about this game
            supposed = rejected[0].lower().endswith("would")
            return supposed or not _OLD_SCOPE.match(after[rejected.end() :])
        if _OLD_SCOPE.match(after):
            return True
        later = [m for m in self.mentions[index + 1 :] if not m.weak]
        if not later and _BUT_FORBIDDEN.match(after):
            return True
        if later and _TAKEN_BACK.search(after):
            return True
        return bool(_BUT_NEXT.match(after)) and any(
            mention.move != self.mentions[index].move for mention in later
        )

    def _propagate_rejections(self) -> None:
        """Extend rejections to adjacent mentions: "Bb5 (f1b5) is illegal"."""
        joined = [
            index
            for index, (first, second) in enumerate(pairwise(self.mentions))
            if _JOINED.fullmatch(gap := self.text[first.end : second.start])
            and (first.move == second.move or _OR.search(gap))
        ]
        for index in joined:
            if self.stances[index] is Stance.REJECTED:
                self.stances[index + 1] = Stance.REJECTED
        for index in reversed(joined):
            if self.stances[index + 1] is Stance.REJECTED and self._is_rejected_after(index + 1):
                self.stances[index] = Stance.REJECTED

    def is_rejected_later(self, index: int) -> bool:
        """Whether the text rejects the same move after this mention."""
        return self._last_rejected.get(self.mentions[index].move, -1) > index

    def rejects(self, move: chess.Move | None) -> bool:
        """Whether the text rejects a move anywhere."""
        return move in self._last_rejected

    def may_be_refused(self, index: int) -> bool:
        """Whether the text has a negation near a mention, or judges the move without praise."""
        if _JUDGED.match(self._after[index]) and not _PRAISED.match(self._after[index]):
            return True
        after = self._after[index]
        ends = [match.end() for match in _SENTENCE_END.finditer(after)][:2]
        near = self._before[index] + " " + (after[: ends[-1]] if len(ends) == 2 else after)
        return bool(_NEGATION.search(near))

    def is_asked_alone(self, index: int) -> bool:
        """Whether a question mark directly follows the move: "Bb5?"."""
        return bool(re.match(r"[\"')\]+]*\?", self._after[index]))

    def is_finished(self, index: int) -> bool:
        """Whether the sentence of a mention is complete, or the text ends with the mention."""
        place = self.mentions[index].end
        end = _SENTENCE_END.search(self.text, place)
        return bool(end) or not re.search(r"\w", self.text[place:])
