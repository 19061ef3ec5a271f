// Tests the PMI server of a step: the exact messages that tasks send and receive, on one node and
// on several.
#include <doctest/doctest.h>

#include <deque>
#include <memory>

#include "noded/pmi/pmi2/server.h"
#include "noded/pmi/wire.h"

namespace gantry::pmi2 {
namespace {

std::string framed(const std::string& body) {
  std::string length = std::to_string(body.size());
  length.resize(6, ' ');
  return length + body;
}

// Writes what take() returns as "name key=value ..." for each command, then why it stopped.
std::string taken(Version version, const std::string& bytes) {
  std::string out;
  std::size_t at = 0;
  Command command;
  for (;;) {
    const Taken one = take(version, bytes, at, command);
    if (one == Taken::more) return out + (at == bytes.size() ? "end" : "more");
    if (one == Taken::malformed) return out + "malformed";
    out += command.name;
    for (const auto& [key, value] : command.values) out += " " + key + "=" + value;
    out += "|";
  }
}

TEST_CASE("commands of PMI-1 are parsed, and malformed ones are refused") {
  const auto of = [](const std::string& bytes) { return taken(Version::v1, bytes); };
  CHECK(of("cmd=init pmi_version=1 pmi_subversion=1\n") ==
        "init pmi_version=1 pmi_subversion=1|end");
  CHECK(of("cmd=get_maxes\ncmd=barrier_in \ncmd=fin") == "get_maxes|barrier_in|more");
  CHECK(of("cmd=put  kvsname=1.0 key=a value=b=c$d#\n") ==
        "put kvsname=1.0 key=a value=b=c$d#|end");
  CHECK(of("cmd=put key=a value=\n") == "put key=a value=|end");
  CHECK(of("cmd=abort exitcode=3 message=all is lost\n") ==
        "abort exitcode=3 message=all is lost|end");
  CHECK(of("mcmd=spawn\nnprocs=2\nexecname=a b\ntotspawns=2\nspawnssofar=1\n") == "more");
  CHECK(of("mcmd=spawn\nexecname=a=b\ntotspawns=2\nspawnssofar=1\nargcnt=0\nendcmd\ncmd=get_"
           "appnum\n") == "spawn totspawns=2 spawnssofar=1|get_appnum|end");
  for (const char* bad : {"\n", "hello\n", "cmd=\n", "=a\n", "key=a cmd=put\n", "cmd=put key\n",
                          "cmd=put =b\n", "mcmd=other\n"})
    CHECK(of(bad) == "malformed");
  CHECK(of(std::string(kMaxCommand, 'x')) == "more");
  CHECK(of(std::string(kMaxCommand + 1, 'x')) == "malformed");
  CHECK(of("mcmd=spawn\n" + std::string(kMaxCommand, 'x')) == "malformed");
}

TEST_CASE("commands of PMI-2 are parsed, and malformed ones are refused") {
  const auto of = [](const std::string& bytes) { return taken(Version::v2, bytes); };
  CHECK(of(framed("cmd=fullinit;pmijobid=7.0;pmirank=1;threaded=FALSE;")) ==
        "fullinit pmijobid=7.0 pmirank=1 threaded=FALSE|end");
  CHECK(of("    14cmd=kvs-fence;" + framed("cmd=finalize;")) == "kvs-fence|finalize|end");
  CHECK(of(framed("cmd=kvs-put;key=a;value=b;;c=d\ne;;;")) == "kvs-put key=a value=b;c=d\ne;|end");
  CHECK(of(framed("cmd=kvs-put;key=a;value=;")) == "kvs-put key=a value=|end");
  CHECK(of("14") == "more");
  CHECK(of("14    cmd=kvs") == "more");
  for (const char* bad : {"hello ", "      ", "-1    ", "1x    ", "999999", "0     "})
    CHECK(of(bad) == "malformed");
  for (const char* bad : {"cmd=kvs-put", "key=a;", "cmd;", "cmd=;", "cmd=put;=a;", "cmd=a;;"})
    CHECK(of(framed(bad)) == "malformed");
}

TEST_CASE("replies are written in the form of each PMI version") {
  CHECK(Reply(Version::v1, "put_result").result(-1, "not so").bytes() ==
        "cmd=put_result rc=-1 msg=not_so\n");
  CHECK(Reply(Version::v2, "kvs-put-response").result(5, "a;b").add("n", 7).bytes() ==
        "42    cmd=kvs-put-response;rc=5;errmsg=a;;b;n=7;");
}

TEST_CASE("the process mapping says which ranks share a node") {
  CHECK(process_mapping({1}) == "(vector,(0,1,1))");
  CHECK(process_mapping({2, 2}) == "(vector,(0,2,2))");
  CHECK(process_mapping({2, 2, 1, 2}) == "(vector,(0,2,2),(2,1,1),(3,1,2))");
}

// The servers of a step, joined by queues, with a record of what each task and the shims received.
class Step {
 public:
  explicit Step(const std::vector<std::uint32_t>& tasks) {
    pmix::Layout layout;
    layout.name = "7.0";
    layout.tasks = tasks;
    for (std::size_t n = 0; n < tasks.size(); ++n) layout.nodes.push_back("n" + std::to_string(n));
    heard.resize(layout.size());
    for (std::uint32_t node = 0; node < tasks.size(); ++node) {
      layout.self = node;
      const std::uint32_t first = layout.first_rank(node);
      Out out;
      out.answer = [this, first](std::uint32_t task, std::string_view bytes) {
        heard[first + task] += bytes;
      };
      out.close = [this, first](std::uint32_t task) { heard[first + task] += "(closed)"; };
      out.peer = [this, node](std::uint32_t to, std::string_view bytes) {
        for (std::uint32_t n = 0; n < servers.size(); ++n)
          if (n == to || (to == pmix::kAllOthers && n != node))
            letters_.push_back({node, n, std::string(bytes)});
      };
      out.abort = [this](std::uint32_t rank, int status, const std::string& why) {
        shim += "abort " + std::to_string(rank) + " " + std::to_string(status) + " " + why + "|";
      };
      out.fault = [this](std::uint32_t rank, const std::string& why) {
        shim += "fault " + std::to_string(rank) + " " + why + "|";
      };
      servers.push_back(std::make_unique<Server>(layout, out));
    }
    layout_ = layout;
  }
  // Sends `bytes` as this rank, and returns what the rank receives.
  std::string say(std::uint32_t rank, const std::string& bytes) {
    heard[rank].clear();
    const std::uint32_t node = layout_.node_of(rank);
    servers[node]->from_task(rank - layout_.first_rank(node), bytes);
    return heard[rank];
  }
  std::string say_2(std::uint32_t rank, const std::string& body) {
    const std::string said = say(rank, framed(body));
    return said.substr(std::min<std::size_t>(said.size(), 6));
  }
  void leave(std::uint32_t rank) {
    const std::uint32_t node = layout_.node_of(rank);
    servers[node]->gone(rank - layout_.first_rank(node));
  }
  void deliver() {
    while (!letters_.empty()) {
      const Letter letter = std::move(letters_.front());
      letters_.pop_front();
      servers[letter.to]->from_peer(letter.from, letter.bytes);
    }
  }
  void begin(int version) {
    for (std::uint32_t rank = 0; rank < heard.size(); ++rank)
      say(rank, "cmd=init pmi_version=" + std::to_string(version) + " pmi_subversion=0\n");
  }

  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::string> heard;
  std::string shim;

 private:
  struct Letter {
    std::uint32_t from, to;
    std::string bytes;
  };
  std::deque<Letter> letters_;
  pmix::Layout layout_;
};

TEST_CASE("a single task gets the right reply to every command of PMI-1") {
  Step step({1});
  CHECK(step.servers[0]->environment(0, 6) ==
        std::vector<std::string>{"PMI_FD=6", "PMI_RANK=0", "PMI_SIZE=1", "PMI_JOBID=7.0",
                                 "PMI_SPAWNED=0"});
  CHECK(step.say(0, "cmd=init pmi_version=3 pmi_subversion=0\n") ==
        "cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0\n");
  CHECK(step.say(0, "cmd=init pmi_version=1 pmi_subversion=1\n") ==
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
  CHECK(step.say(0, "cmd=get_maxes\n") ==
        "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  CHECK(step.say(0, "cmd=get_appnum\n") == "cmd=appnum rc=0 appnum=-1\n");
  CHECK(step.say(0, "cmd=get_universe_size\n") == "cmd=universe_size rc=0 size=1\n");
  CHECK(step.say(0, "cmd=get_my_kvsname\n") == "cmd=my_kvsname rc=0 kvsname=7.0\n");
  CHECK(step.say(0, "cmd=put kvsname=7.0 key=a value=b\n") == "cmd=put_result rc=0\n");
  CHECK(step.say(0, "cmd=put kvsname=7.0 key=" + std::string(65, 'k') + " value=b\n") ==
        "cmd=put_result rc=5 msg=the_key_is_too_long\n");
  CHECK(step.say(0, "cmd=get kvsname=7.0 key=a\n") ==
        "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  CHECK(step.say(0, "cmd=barrier_in\n") == "cmd=barrier_out rc=0\n");
  CHECK(step.say(0, "cmd=get kvsname=7.0 key=a\n") == "cmd=get_result rc=0 value=b\n");
  CHECK(step.say(0, "cmd=getbyidx kvsname=7.0 idx=1\n") ==
        "cmd=getbyidx_results rc=0 nextidx=2 key=a val=b\n");
  CHECK(step.say(0, "cmd=getbyidx kvsname=7.0 idx=2\n") ==
        "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n");
  CHECK(step.say(0, "cmd=lookup_name service=s\n") ==
        "cmd=lookup_result rc=-1 msg=not_supported info=fail\n");
  CHECK(step.say(0, "cmd=create_kvs\n") == "cmd=newkvs rc=-1 msg=not_supported\n");
  CHECK(step.say(0, "mcmd=spawn\ntotspawns=2\nspawnssofar=1\nendcmd\n").empty());
  CHECK(step.say(0, "mcmd=spawn\ntotspawns=2\nspawnssofar=2\nendcmd\n") ==
        "cmd=spawn_result rc=-1 msg=not_supported\n");
  CHECK(step.say(0, "cmd=finalize\n") == "cmd=finalize_ack rc=0\n(closed)");
  CHECK(step.shim.empty());
}

TEST_CASE("a single task gets the right reply to every command of PMI-2") {
  Step step({1});
  CHECK(step.say(0, "cmd=init pmi_version=2 pmi_subversion=0\n") ==
        "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
  CHECK(step.say_2(0, "cmd=fullinit;pmijobid=7.0;pmirank=0;threaded=FALSE;") ==
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=-1;"
        "debugged=FALSE;pmiverbose=FALSE;");
  CHECK(step.say_2(0, "cmd=job-getid;thrid=0x1;") ==
        "cmd=job-getid-response;thrid=0x1;rc=0;jobid=7.0;");
  CHECK(step.say_2(0, "cmd=info-getjobattr;key=universeSize;") ==
        "cmd=info-getjobattr-response;rc=0;found=TRUE;value=1;");
  CHECK(step.say_2(0, "cmd=info-getjobattr;key=PMI_process_mapping;") ==
        "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,1));");
  CHECK(step.say_2(0, "cmd=info-getjobattr;key=other;") ==
        "cmd=info-getjobattr-response;rc=0;found=FALSE;");
  CHECK(step.say_2(0, "cmd=kvs-put;key=a;value=;;b;;;") == "cmd=kvs-put-response;rc=0;");
  CHECK(step.say_2(0, "cmd=kvs-put;key=a;value=" + std::string(1025, 'v') + ";") ==
        "cmd=kvs-put-response;rc=7;errmsg=the value is too long;");
  CHECK(step.say_2(0, "cmd=kvs-get;jobid=7.0;srcid=-1;key=a;") ==
        "cmd=kvs-get-response;rc=0;found=FALSE;");
  CHECK(step.say_2(0, "cmd=kvs-fence;thrid=0x2;") == "cmd=kvs-fence-response;thrid=0x2;rc=0;");
  CHECK(step.say_2(0, "cmd=kvs-get;jobid=7.0;srcid=-1;key=a;") ==
        "cmd=kvs-get-response;rc=0;found=TRUE;value=;;b;;;");
  CHECK(step.say_2(0, "cmd=spawn;ncmds=1;") == "cmd=spawn-response;rc=14;errmsg=not supported;");
  CHECK(step.say_2(0, "cmd=name-publish;name=a;port=b;thrid=3;") ==
        "cmd=name-publish-response;thrid=3;rc=14;errmsg=not supported;");
  CHECK(step.say_2(0, "cmd=finalize;") == "cmd=finalize-response;rc=0;(closed)");
  CHECK(step.shim.empty());
}

TEST_CASE("each fence gives every rank what all ranks have put before it") {
  Step step({2, 1});
  step.begin(1);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    step.say(rank,
             "cmd=put key=k" + std::to_string(rank) + " value=v" + std::to_string(rank) + "\n");
  CHECK(step.say(2, "cmd=barrier_in\n").empty());
  step.deliver();
  CHECK(step.say(0, "cmd=barrier_in\n").empty());
  CHECK(step.say(1, "cmd=barrier_in\n") == "cmd=barrier_out rc=0\n");
  CHECK(step.heard[0] == "cmd=barrier_out rc=0\n");
  CHECK(step.heard[2].empty());
  // This node is ahead: the other one is still in the first barrier.
  CHECK(step.say(0, "cmd=put key=k2 value=new\ncmd=barrier_in\n") == "cmd=put_result rc=0\n");
  step.deliver();
  CHECK(step.heard[2] == "cmd=barrier_out rc=0\n");
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    CHECK(step.say(2, "cmd=get key=k" + std::to_string(rank) + "\n") ==
          "cmd=get_result rc=0 value=v" + std::to_string(rank) + "\n");
  CHECK(step.say(2, "cmd=barrier_in\n").empty());
  step.say(1, "cmd=barrier_in\n");
  step.deliver();
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    CHECK(step.say(rank, "cmd=get key=k2\n") == "cmd=get_result rc=0 value=new\n");
  CHECK(step.say(1, "cmd=get key=PMI_process_mapping\n") ==
        "cmd=get_result rc=0 value=(vector,(0,1,2),(1,1,1))\n");
  for (std::uint32_t rank = 0; rank < 3; ++rank) step.say(rank, "cmd=finalize\n");
  step.deliver();
  CHECK(step.shim.empty());
}

TEST_CASE("a node attribute is visible at once to the node's tasks, and they can wait for it") {
  Step step({2, 1});
  step.begin(2);
  CHECK(step.say_2(1, "cmd=info-getnodeattr;key=a;wait=FALSE;") ==
        "cmd=info-getnodeattr-response;rc=0;found=FALSE;");
  CHECK(step.say_2(1, "cmd=info-getnodeattr;key=a;wait=TRUE;thrid=9;").empty());
  CHECK(step.say_2(0, "cmd=info-putnodeattr;key=a;value=b;") ==
        "cmd=info-putnodeattr-response;rc=0;");
  CHECK(step.heard[1].substr(6) ==
        "cmd=info-getnodeattr-response;thrid=9;rc=0;found=TRUE;value=b;");
  CHECK(step.say_2(2, "cmd=info-getnodeattr;key=a;wait=FALSE;") ==
        "cmd=info-getnodeattr-response;rc=0;found=FALSE;");
}

TEST_CASE("a task whose request is not understood ends the step with one message") {
  for (const char* bad : {"hello\n", "cmd=init\ncmd=put key=a value=b\n", "cmd=what\n"}) {
    Step step({2});
    if (bad[4] != 'i') step.begin(1);
    CHECK(step.say(1, bad).ends_with("(closed)"));
    CHECK(step.shim.starts_with("fault 1 its PMI request is not "));
    step.heard[1].clear();
    CHECK(step.say(1, "cmd=get_maxes\n").empty());
    step.say(0, "hello\n");
    CHECK(std::count(step.shim.begin(), step.shim.end(), '|') == 1);
  }
  Step step({2});
  step.begin(1);
  step.say(0, "cmd=barrier_in\ncmd=barrier_in\n");
  CHECK(step.shim == "fault 0 it is in a PMI fence already|");
}

TEST_CASE("an abort reaches the shim with its status and message") {
  Step one({1}), two({1});
  one.begin(1);
  one.say(0, "cmd=abort exitcode=5 message=no\tway\n");
  CHECK(one.shim == "abort 0 5 no?way|");
  two.begin(2);
  two.say_2(0, "cmd=abort;isworld=FALSE;msg=mine;");
  CHECK(two.shim.empty());
  two.say_2(0, "cmd=abort;isworld=TRUE;msg=ours;");
  CHECK(two.shim == "abort 0 1 ours|");
}

TEST_CASE("a task that has left ends the step only if others wait for it in a fence") {
  constexpr const char* kMissed = " it has left PMI, and others wait for it in a fence|";
  SUBCASE("the task is on the same node") {
    Step step({2});
    step.begin(1);
    step.leave(1);
    CHECK(step.shim.empty());
    step.say(0, "cmd=barrier_in\n");
    CHECK(step.shim == std::string("fault 1") + kMissed);
  }
  SUBCASE("the task is on another node") {
    Step step({1, 1});
    step.begin(1);
    step.say(0, "cmd=barrier_in\n");
    step.deliver();
    CHECK(step.shim.empty());
    step.leave(1);
    CHECK(step.shim == std::string("fault 1") + kMissed);
  }
  SUBCASE("the tasks of another node end before their server hears of the fence") {
    Step step({1, 1});
    step.begin(1);
    step.say(0, "cmd=barrier_in\n");
    CHECK(step.shim.empty());
    step.servers[0]->from_peer(1, "");
    CHECK(step.shim == "fault 0 it waits in a fence for the tasks of n1, which have ended|");
  }
  SUBCASE("the tasks of another node have ended before the fence") {
    Step step({1, 1});
    step.begin(1);
    step.servers[0]->from_peer(1, "");
    CHECK(step.shim.empty());
    step.say(0, "cmd=barrier_in\n");
    CHECK(step.shim == "fault 0 it waits in a fence for the tasks of n1, which have ended|");
  }
  SUBCASE("a node that has entered the fence before its tasks ended is not missed") {
    Step step({1, 1});
    step.begin(1);
    step.say(1, "cmd=barrier_in\n");
    step.deliver();
    step.servers[0]->from_peer(1, "");
    step.say(0, "cmd=barrier_in\n");
    CHECK(step.heard[0] == "cmd=barrier_out rc=0\n");
    CHECK(step.shim.empty());
  }
  SUBCASE("a task that leaves after it entered the fence is not missed") {
    Step step({1, 1});
    step.begin(1);
    step.say(0, "cmd=barrier_in\n");
    step.say(1, "cmd=barrier_in\n");
    step.leave(1);
    step.deliver();
    CHECK(step.heard[0] == "cmd=barrier_out rc=0\n");
    CHECK(step.shim.empty());
  }
}

}  // namespace
}  // namespace gantry::pmi2
