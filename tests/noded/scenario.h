// Text scenarios of the node core: inputs stand at the margin, and the core's answers are indented
// below them. The runner replays the inputs and writes the whole text again. A test compares the
// two, or with GANTRY_UPDATE_GOLDEN=1 rewrites the file, so that a change of behaviour shows as a
// diff.
//
//   recovered KEY STAGE [started=T] [cause=C] [exit=CODE:SIGNAL]   before start
//   start [epoch=N] [fence=T] [contact=T]     a new core; also after a crash
//   +T                      time passes; the core is woken at each time it asked for
//   link up | link down | stop | status | not-remembered
//   accept session=N [epoch=N] [heartbeat=T] [fence=T] [kill=KEYS] [forget=KEYS] [answers=T]
//   launch KEY [hold] [holder] | go KEY | terminate KEY grace=T [notice=WORD] | ack KEY
//   signal KEY SIGNAL [steps|batch|full] | beat-ack [heard=T] | again | fetch PATH
//   held KEY | running KEY | ended KEY [exit=CODE:SIGNAL] [cause=C] | begin-failed KEY
//
// KEY is JOB.ATTEMPT, T is like 500ms, 5s, 2m. Orders take [epoch=N] [session=N] [seq=N]; without
// these they have the present epoch and session, and the next seq.
#pragma once

#include <string>

namespace gantry::test {

std::string replay(const std::string& text);

}  // namespace gantry::test
