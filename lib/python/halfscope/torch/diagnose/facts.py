"""Facts that the observers of an emulated step add to a search: what no outcome shows, and where numbers were lost."""

from __future__ import annotations

from dataclasses import replace

from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.diagnose.silent.angle_error import ANGLE_ERROR
from halfscope.torch.diagnose.silent.changed_constants import CHANGED_CONSTANTS
from halfscope.torch.diagnose.silent.equal_positions import EQUAL_POSITIONS
from halfscope.torch.diagnose.silent.lost_digits import LOST_DIGITS
from halfscope.torch.diagnose.silent.rounded_logits import ROUNDED_LOGITS
from halfscope.torch.diagnose.silent.silent import Steps, findings_of, seen_of
from halfscope.torch.diagnose.silent.stalled_totals import STALLED_TOTALS
from halfscope.torch.doctor.program import Program
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.emulate.training import Trainee
from halfscope.torch.findings.finding import Finding
from halfscope.torch.policy import Policy

# On a step that is healthy, and on one that is not, of which the cause alone is told: the search has tried remedies.
_OF_HEALTHY = (ANGLE_ERROR, EQUAL_POSITIONS, CHANGED_CONSTANTS, ROUNDED_LOGITS, STALLED_TOTALS, LOST_DIGITS)
_OF_SPOILED = (ANGLE_ERROR, EQUAL_POSITIONS, CHANGED_CONSTANTS, STALLED_TOTALS)
_AUTOCAST = {"fp16": "autocast_cuda", "bf16": "autocast_cpu"}


def with_facts(report: Diagnosis, program: Program) -> Diagnosis:
    """The report with notes; as it was where the observers end with an error."""
    if not report.is_healthy and not report.alarms:
        return report  # the state before the step, or FP32 itself, is at fault
    try:
        notes, runs = _notes(report, program)
    except Exception:  # an operation that the emulation refuses hides no finding
        return report
    about = report.about.replace(f"{report.runs} runs.", f"{report.runs + runs} runs.")
    return replace(report, notes=(*report.notes, *notes), about=about, runs=report.runs + runs)


def _notes(report: Diagnosis, program: Program) -> tuple[list[str], int]:
    name = program.format.name
    policy = Policy(_AUTOCAST[name] if program.under_autocast else name, None, {})
    trainee, outside = Trainee(program.model, program.optimizers), program.written_outside.values()
    session = Session(trainee, program.step, policy, program.format, program.scale, outside=outside)
    session.keep_gradients()
    # The search has judged gradients, and those of a spoiled forward pass follow from it.
    session.is_forward_only = report.is_healthy or any(alarm.distance.group == "number" for alarm in report.alarms)
    try:
        steps = Steps(session, _run_of(session), Outcome(report.loss_in_fp32, {}, {}, [], [], []))
        if report.is_healthy:
            found = findings_of(_OF_HEALTHY, steps)
            return [f"Seen, though no outcome of this step shows it: {_sentence(each)}" for each in found], session.runs
        return [f"Seen too: {text}" for text in seen_of(_OF_SPOILED, steps)], session.runs
    finally:
        session.close()


def _run_of(session: Session) -> Outcome:
    """The step in the format; with its backward pass where the step asks for gradients itself."""
    try:
        return session.run()
    except RuntimeError:
        if not session.is_forward_only:
            raise
    session.is_forward_only = False
    return session.run()


def _sentence(finding: Finding) -> str:
    """The cause, and the change where one was tried."""
    if not finding.why:
        return f"{'' if finding.place is None else f'{finding.place}, '}{finding.change}."
    return f"{finding.why} {finding.change[:1].upper()}{finding.change[1:]}: {finding.sure}."
