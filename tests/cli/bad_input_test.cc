// Malformed command lines, scripts and configurations: for each, the command prints one clear
// sentence and ends with the right exit status, before it sends anything.
#include <doctest/doctest.h>

#include "tests/cli/run_program.h"

using namespace gantry::test;

namespace {

struct Bad {
  std::vector<std::string> argv;
  std::string input;
  std::string error;  // the first line of standard error
  int status = 1;
  std::map<std::string, std::string> environment = {};
};

const std::string kGood = "#!/bin/sh\ntrue\n";
std::string script(const std::string& lines) {
  return "#!/bin/sh\n" + lines + "\ntrue\n";
}

const std::vector<Bad>& command_lines() {
  static const std::vector<Bad> cases{
      // refused by the option parser
      {{"gbatch", "--colour"}, kGood, "gbatch: unrecognized option '--colour'", 2},
      {{"gbatch", "--tiem=3"},
       kGood,
       "gbatch: unrecognized option '--tiem'; did you mean '--time'?",
       2},
      {{"gbatch", "-Z"}, kGood, "gbatch: invalid option -- 'Z'", 2},
      {{"gbatch", "--time"}, kGood, "gbatch: option '--time' requires an argument", 2},
      {{"gbatch", "-t"}, kGood, "gbatch: option requires an argument -- 't'", 2},
      {{"gbatch", "--hold=yes"}, kGood, "gbatch: option '--hold' doesn't allow an argument", 2},
      {{"gqueue", "extra"}, "", "gqueue: extra argument 'extra'", 2},
      {{"gctl", "drian", "n1"}, "", "gctl: unknown command 'drian'; did you mean `drain`?", 2},
      {{"gctl", "drain"}, "", "gctl drain: name nodes, or racks with --rack", 2},
      {{"gctl", "drain", "n1", "--rack", "r1"},
       "",
       "gctl drain: name nodes or racks, not both at once",
       2},
      {{"gctl", "drain", "--rack", "r1", "--gpu", "1"},
       "",
       "gctl drain: --gpu is for GPUs of nodes that are named",
       2},
      {{"gctl", "drain", "--rack", "r1,", "-r", "x"},
       "",
       "gctl drain: error: --rack: a name is missing",
       1},
      // refused because of a value
      {{"gbatch", "-t", "soon"}, kGood, "gbatch: error: --time: \"soon\" is not", 1},
      {{"gbatch", "-t", "0"},
       kGood,
       "gbatch: error: --time: 0 is no time limit; use UNLIMITED, or leave it to the partition"},
      {{"gbatch", "-t", "99999999999999999999"}, kGood, "gbatch: error: --time: "},
      {{"gbatch", "--mem=12X"},
       kGood,
       "gbatch: error: --mem: memory \"12X\" is not a whole number of MB, or of K, M, G or T"},
      {{"gbatch", "--mem=0"},
       kGood,
       "gbatch: error: --mem: 0 would mean all memory of the node; use --exclusive, or say how "
       "much"},
      {{"gbatch", "--mem=-1G"}, kGood, "gbatch: error: --mem: "},
      {{"gbatch", "--mem=1G", "--mem-per-cpu=1G"},
       kGood,
       "gbatch: --mem and --mem-per-cpu exclude each other",
       2},
      {{"gbatch", "-n", "0"}, kGood, "gbatch: error: --ntasks: "},
      {{"gbatch", "-n", "1e3"}, kGood, "gbatch: error: --ntasks: "},
      {{"gbatch", "-c", "99999999999"}, kGood, "gbatch: error: --cpus-per-task: "},
      {{"gbatch", "-N", "4-2"},
       kGood,
       "gbatch: error: --nodes: \"4-2\" has a maximum below its minimum"},
      {{"gbatch", "-N", "4", "-n", "2"},
       kGood,
       "gbatch: error: 2 tasks cannot use 4 nodes; ask for as many tasks as nodes at least"},
      {{"gbatch", "-a", "5-1"}, kGood, "gbatch: error: --array: "},
      {{"gbatch", "-a", "0-9%0"}, kGood, "gbatch: error: --array: "},
      {{"gbatch", "-a", "0-99999999"}, kGood, "gbatch: error: --array: "},
      {{"gbatch", "-a", ""}, kGood, "gbatch: error: --array: "},
      {{"gbatch", "-d", "afterk:1"},
       kGood,
       "gbatch: error: --dependency: \"afterk\" is no kind of dependency; did you mean `after`?"},
      {{"gbatch", "-d", "afterok"},
       kGood,
       "gbatch: error: --dependency: \"afterok\" needs a job: afterok:ID"},
      {{"gbatch", "-d", "afterok:1,afterany:2?after:3"},
       kGood,
       "gbatch: error: --dependency: \"afterok:1,afterany:2?after:3\" has both , (all) and ? "
       "(any); use one of them"},
      {{"gbatch", "-d", "afterok:x"}, kGood, "gbatch: error: --dependency: \"x\" is not a job id"},
      {{"gbatch", "-d", "afterok:1+5"},
       kGood,
       "gbatch: error: --dependency: \"1+5\": only `after` can have a delay"},
      {{"gbatch", "--signal=WINK@60"}, kGood, "gbatch: error: --signal: "},
      {{"gbatch", "--begin=yesterdayish"}, kGood, "gbatch: error: --begin: "},
      {{"gbatch", "--deadline=2001-01-01"},
       kGood,
       "gbatch: error: --deadline: \"2001-01-01\" is in the past"},
      {{"gbatch", "-w", "n[1"}, kGood, "gbatch: error: --nodelist: "},
      {{"gbatch", "-w", "n[1-2]", "-x", "n2"},
       kGood,
       "gbatch: error: node n2 is in --nodelist and in --exclude"},
      {{"gbatch", "--nice=20000"}, kGood, "gbatch: error: --nice: "},
      {{"gbatch", "--open-mode=x"},
       kGood,
       "gbatch: error: --open-mode: \"x\" is not append or truncate"},
      {{"gbatch", "--network=bridge"},
       kGood,
       "gbatch: error: --network: \"bridge\" is not job, job,PROFILE, none or host"},
      {{"gbatch", "--container-mounts=data:/data"},
       kGood,
       "gbatch: error: --container-mounts: \"data:/data\" is not SRC:DST[:ro|:rw] with absolute "
       "paths"},
      {{"gbatch", "--export==x"}, kGood, "gbatch: error: --export: \"=x\" has no name before `=`"},
      {{"gbatch", "--exclusive=rack"},
       kGood,
       "gbatch: error: --exclusive: \"rack\" is not user or tenant; --exclusive alone asks for "
       "whole nodes"},
      {{"gbatch", "--topology=near:rack"},
       kGood,
       "gbatch: error: --topology: \"near\" is not required, preferred or balanced"},
      {{"gbatch", "--topology=preferred:"},
       kGood,
       "gbatch: error: --topology: the level is missing"},
      {{"gbatch", "--priority-class="},
       kGood,
       "gbatch: error: --priority-class: must not be empty"},
      {{"gbatch", "--tolerate=,"}, kGood, "gbatch: error: --tolerate: must not be empty"},
      {{"gbatch", "-C", "a&(b|c)"},
       kGood,
       "gbatch: error: --constraint: \"a&(b|c)\" is not supported; use feature names with & or |"},
      {{"gbatch", "-J", ""}, kGood, "gbatch: error: --job-name: must not be empty"},
      {{"gbatch", "-J", "two\nlines"}, kGood, "gbatch: error: --job-name: must be one line"},
      {{"gbatch", "--comment", std::string(5000, 'x')},
       kGood,
       "gbatch: error: --comment: is longer than 4096 bytes"},
      // options that Slurm has and Gantry does not support: they are refused, never ignored
      {{"gbatch", "--qos=high"},
       kGood,
       "gbatch: error: --qos is not supported: there are no QOS; use --partition"},
      {{"gbatch", "--gpu-bind=closest"},
       kGood,
       "gbatch: error: --gpu-bind is not supported: tasks of steps see GPUs"},
      {{"gbatch", "--mail-type=TIME_LIMIT_90"},
       kGood,
       "gbatch: error: --mail-type: \"TIME_LIMIT_90\": mail is sent at BEGIN, END, FAIL, REQUEUE"},
      {{"gbatch", "--mail-user=-oQ/tmp"},
       kGood,
       "gbatch: error: --mail-user: \"-oQ/tmp\" is no address of mail"},
      {{"gqueue", "-O", "jobid"}, "", "gqueue: error: --Format is not supported: use -o/--format"},
      {{"gbatch"},
       kGood,
       "gbatch: error: SBATCH_TIMELIMIT: --time: \"soon\" is not",
       1,
       {{"SBATCH_TIMELIMIT", "soon"}}},
      // refused by other commands
      {{"gqueue", "-t", "SLEEPING"}, "", "gqueue: error: Invalid job state specified: SLEEPING"},
      {{"gqueue", "-j", "twelve"}, "", "gqueue: error: --job: Invalid job id twelve"},
      {{"gqueue", "-o", "%q"}, "", "gqueue: Invalid job format specification: q;", 2},
      {{"gqueue", "-o", "%"}, "", "gqueue: the format \"%\" ends in a % without a field", 2},
      {{"gqueue", "-o", "%99999i"}, "", "gqueue: \"%99999i\" has a width above 10000", 2},
      {{"gqueue", "--watch=0"}, "", "gqueue: error: --watch: "},
      {{"gqueue", "--watch", "--json"}, "", "gqueue: --json and --watch exclude each other", 2},
      {{"gcancel"}, "", "gcancel: No job identification provided", 2},
      {{"gcancel", "abc"}, "", "gcancel: error: Invalid job id abc"},
      {{"gcancel", "-s", "WINK", "1"}, "", "gcancel: error: --signal: "},
      {{"gcancel", "-b", "1"},
       "",
       "gcancel: --batch and --full say who gets a --signal; give one",
       2},
      {{"gacct", "-o", "JobIDD"},
       "",
       "gacct: Invalid field requested: \"JobIDD\"; did you mean `JobID`?",
       2},
      {{"gacct", "-S", "noonish"}, "", "gacct: error: --starttime: "},
      {{"gacct", "-S", "2026-02-01", "-E", "2026-01-01"},
       "",
       "gacct: error: the end time is before the start time"},
      {{"gacct", "-nu", "alice", "-o", "Account%256", "|", "tail", "-1"},
       "",
       "gacct: invalid option -- '1'",
       2},
      {{"ginfo", "-t", "sleepy"},
       "",
       "ginfo: error: Bad state string: \"sleepy\"; use idle, mixed, allocated, drained, draining, "
       "down or all"},
      {{"ginfo", "--layout", "--drift"},
       "",
       "ginfo: --layout and --drift are two tables: give one of them",
       2},
      {{"ginfo", "--drift", "-o", "%N"},
       "",
       "ginfo: --format does not apply to --layout and --drift",
       2},
      {{"gctl", "update", "job", "12", "colour=red"},
       "",
       "gctl update: \"colour\" of a job cannot be changed",
       2},
      {{"gctl", "update", "job", "12"}, "", "gctl update: nothing to change is given", 2},
      {{"gctl", "update", "planet", "x", "a=b"},
       "",
       "gctl update: \"planet\" is not job, node or partition",
       2},
      {{"gctl", "update", "node", "n1", "state=down"},
       "",
       "gctl update: \"down\" could mean two things: close the node, or declare a lost one dead; "
       "use state=close or gctl dead",
       2},
      {{"gctl", "drain", "n1"}, "", "gctl drain: a reason is needed, for those who come later", 2},
      {{"gctl", "key", "add", "alice", "zz"},
       "",
       "gctl key add: error: \"zz\" is not a public key; `gantry keygen` prints one, of 64 hex "
       "digits"},
      {{"gctl", "enroll", "n1", "zz"}, "", "gctl enroll: error: "},
      {{"gantry", "up", "--nodes", "0"}, "", "gantry up: error: --nodes: "},
      {{"gantry", "up", "--runtime", "docker"},
       "",
       "gantry up: error: --runtime: \"docker\" is not crun, runc, process or a path"},
      {{"gantry", "up", "--state", "/"},
       "",
       "gantry up: error: \"/\" cannot hold a cluster; name a directory without blanks and quotes"},
      {{"gantry", "config", "check", "/nonexistent"},
       "",
       "gantry config check: error: cannot read /nonexistent: No such file or directory"},
  };
  return cases;
}

const std::vector<Bad>& scripts() {
  static const std::vector<Bad> cases{
      {{"gbatch"}, "", "gbatch: error: Batch script is empty!"},
      {{"gbatch"}, " \n\n", "gbatch: error: Batch script contains only whitespace!"},
      {{"gbatch"},
       "hostname\n",
       "gbatch: error: This does not look like a batch script.  The first line must start with #! "
       "followed by the path to an interpreter.  For instance: #!/bin/sh"},
      {{"gbatch"}, "#!/bin/sh\r\ntrue\r\n", "gbatch: error: Batch script contains DOS line breaks"},
      {{"gbatch"},
       std::string("#!/bin/sh\n\0x", 12),
       "gbatch: error: The batch script contains a zero byte; it is not a text file"},
      {{"gbatch", "/nonexistent.sh"},
       "",
       "gbatch: error: Unable to open file /nonexistent.sh: No such file or directory"},
      {{"gbatch", "/tmp"}, "", "gbatch: error: cannot read /tmp: Is a directory"},
      {{"gbatch"},
       script("#SBATCH --colour"),
       "gbatch: standard input:2: unrecognized option '--colour'",
       2},
      {{"gbatch"},
       script("#SBATCH -t soon"),
       "gbatch: error: standard input:2: --time: \"soon\" is not"},
      {{"gbatch"},
       script("\n# note\n#GANTRY --time"),
       "gbatch: standard input:4: option '--time' requires an argument",
       2},
      {{"gbatch"},
       script("#SBATCH words"),
       "gbatch: standard input:2: \"words\" is not an option",
       2},
      {{"gbatch"},
       script("#SBATCH -J \"open"),
       "gbatch: standard input:2: a double quote is not closed",
       2},
      {{"gbatch"},
       script("#SBATCH --wrap=x"),
       "gbatch: standard input:2: --wrap cannot stand in a script",
       2},
      {{"gbatch"},
       script("#SBATCH --qos=x"),
       "gbatch: error: standard input:2: --qos is not supported"},
      {{"gbatch", "--wrap=x", "y.sh"},
       "",
       "gbatch: Script arguments not permitted with --wrap option",
       2},
      {{"gbatch", "--wrap="}, "", "gbatch: --wrap needs a command", 2},
  };
  return cases;
}

void check(const Bad& bad) {
  const Run run = run_program({bad.argv, bad.environment, bad.input, "/tmp"});
  std::string line;
  for (const std::string& word : bad.argv) line += word + " ";
  CAPTURE(line);
  CAPTURE(bad.input);
  CAPTURE(run.err);
  CHECK(run.out.empty());
  CHECK(run.status == bad.status);
  CHECK(run.err.starts_with(bad.error));
  // The error is one sentence; a usage error has a second line that says where to find help.
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') <= 2);
}

}  // namespace

TEST_CASE("a malformed command line is refused with one sentence") {
  for (const Bad& bad : command_lines()) check(bad);
}

TEST_CASE("a malformed script is refused with one sentence") {
  for (const Bad& bad : scripts()) check(bad);
}

TEST_CASE("a malformed client.conf is refused with one sentence") {
  const std::string key(64, '1');
  const std::pair<std::string, std::string> cases[] = {
      {"", "`controller = HOST:PORT` is missing"},
      {"controller = h:1\n", "`public_key = ...` of the controller is missing"},
      {"controller\n", ":1: this is not `key = value`"},
      {"# fine\ncontroler = h:1\n", ":2: controler: unknown key; did you mean `controller`?"},
      {"controller = h\n", ":1: controller: \"h\" is not HOST:PORT or the path of a socket"},
      {"public_key = abc\n", ":1: public_key: "},
      {"auth = trust\n", ":1: auth: \"trust\" is not any, key or munge"},
      {"controller = h:1\nauth = key\npublic_key = " + key + "\n",
       "auth = key needs `key_file = ...`"},
      {std::string(70'000, '#'), "has more than 65536 bytes"},
  };
  for (const auto& [text, error] : cases) {
    const ScratchDir files;
    (void)files.file("client.conf", text);
    const Run run = run_program({{"gqueue"}, {{"GANTRY_CONF", files.path()}}, {}, {}});
    CAPTURE(run.err);
    CHECK(run.status == 1);
    CHECK(run.err.find(error) != std::string::npos);
    CHECK(run.err.starts_with("gqueue: error: " + files.path() + "/client.conf"));
  }
}
