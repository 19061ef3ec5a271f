// Traces in every format give the same jobs; mistakes are refused with file, line and field.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ctld/replay/trace.h"

namespace gantry::replay {
namespace {

Result<Trace> parse(const std::string& text, TraceFormat format) {
  return parse_trace(text, "t", format, {});
}
std::string error_of(const std::string& text, TraceFormat format) {
  const auto trace = parse(text, format);
  return trace ? "" : trace.error().message;
}

TEST_CASE("SWF is read: fields, order, comments, tenants") {
  const std::string text =
      "; MaxProcs: 4\n"
      "2 10 5 60 2 -1 -1 2 100 -1 1 7 3 -1 1 -1 -1 -1\n"
      "\n"
      "1 10 0 30 1 -1 -1 4 -1 -1 1 8 2 -1 1 -1 -1 -1\r\n"
      "3 5 -1 0 1 -1 -1 1 9 -1 0 8 2 -1 1 -1 -1 -1\n";
  const auto trace = parse(text, TraceFormat::swf);
  REQUIRE(trace);
  REQUIRE(trace->jobs.size() == 2);
  CHECK(trace->notes.size() == 1);
  const TraceJob& one = trace->jobs[0];
  CHECK(one.id == 1);
  CHECK(one.line == 4);
  CHECK(one.processors == 4);
  CHECK(!one.limit);
  CHECK(one.tenant == "2");
  const TraceJob& two = trace->jobs[1];
  CHECK(two.limit == seconds(100));
  CHECK(two.logged_wait == seconds(5));
  CHECK(two.user == "7");
  const auto by_user =
      parse_trace(text, "t", TraceFormat::swf, {TraceFormat::swf, TenantField::user});
  CHECK(by_user->jobs[1].tenant == "7");
}

TEST_CASE("CSV is read with our columns and with those of the Philly trace") {
  const auto ours = parse(
      "# a comment\nsubmit,run,limit,gpus,tenant,checkpoint,memory,due\n"
      "1h,90,2h,8,a,10m,4G,6h\n0,30m,unlimited,1,b,,,\n",
      TraceFormat::csv);
  REQUIRE_MESSAGE(ours, ours.error().message);
  CHECK(ours->jobs[0].tenant == "b");
  CHECK(ours->jobs[0].unlimited);
  CHECK(ours->jobs[1].submit == Instant{hours(1).us});
  CHECK(ours->jobs[1].checkpoint == minutes(10));
  CHECK(ours->jobs[1].memory == std::int64_t{4} << 30);
  CHECK(ours->jobs[1].due == hours(6));
  const auto philly = parse(
      "timestamp,duration,num_gpus,gpu_time,cluster\n"
      "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:01:54,5,2,10,x\n",
      TraceFormat::csv);
  REQUIRE_MESSAGE(philly, philly.error().message);
  CHECK(philly->jobs[1].submit - philly->jobs[0].submit == seconds(1));
  CHECK(philly->jobs[1].tenant == "11cb48");
}

TEST_CASE("JSON is read with our fields and as gacct prints it") {
  const auto ours =
      parse(R"([{"submit": 5, "run": "1h", "gpus": 2, "tenant": "a"}])", TraceFormat::json);
  REQUIRE_MESSAGE(ours, ours.error().message);
  CHECK(ours->jobs[0].run == hours(1));
  const auto history = parse(
      R"({"rows": [
  {"row": {"job": 7, "submitted": 1000000, "eligible": 2000000, "started": 5000000,
           "ended": 65000000, "time_limit": 120000000, "cpus": 4, "nodes": 2, "partition": "a",
           "account": "p", "user": "u", "name": "{ \"]}"}, "usage": {}},
  {"row": {"job": 8, "submitted": 1000000, "started": null, "ended": null, "cpus": 1}}
], "more": false})",
      TraceFormat::json);
  REQUIRE_MESSAGE(history, history.error().message);
  REQUIRE(history->jobs.size() == 1);
  const TraceJob& job = history->jobs[0];
  CHECK(job.run == seconds(60));
  CHECK(job.limit == seconds(120));
  CHECK(job.submit == Instant{2'000'000});
  CHECK(job.logged_wait == seconds(3));
  CHECK(job.nodes == 2);
  CHECK(job.project == "p");
  CHECK(history->notes.size() == 1);
}

TEST_CASE("wrong input is refused with file, line and field") {
  CHECK(error_of("1 2 3\n", TraceFormat::swf) ==
        "t:1: run time: is missing: a line has 18 numbers, this one 3");
  CHECK(error_of("; x\n1 2 3 four 1 1 1 1 1\n", TraceFormat::swf) ==
        "t:2: run time: must be a number, not \"four\"");
  CHECK(error_of("submit,colour\n", TraceFormat::csv).starts_with("t:1: colour: no such column; "));
  CHECK(error_of("submit,run,gpu\n", TraceFormat::csv)
            .starts_with("t:1: gpu: no such column; did you mean `gpus`?"));
  CHECK(error_of("submit,run,gpus\n1,2,3\n1,2\n", TraceFormat::csv) ==
        "t:3: 2 values, and the header names 3 columns");
  CHECK(error_of("submit,run,gpus\n1,2,1.5\n", TraceFormat::csv).starts_with("t:2: gpus: must be"));
  CHECK(error_of("submit,run,gpus\nnoon,2,1\n", TraceFormat::csv)
            .starts_with("t:2: submit: must be"));
  CHECK(error_of("submit,run\n1,2\n", TraceFormat::csv) ==
        "t:1: gpus: there is no such column, and none of cpus");
  CHECK(error_of("run,gpus\n1,2\n", TraceFormat::csv) == "t:1: submit: there is no such column");
  CHECK(error_of("submit,run,gpus,num_gpus\n", TraceFormat::csv) ==
        "t:1: num_gpus: there is another column for gpus");
  CHECK(error_of("submit,run,gpus\n,2,1\n", TraceFormat::csv) == "t:2: submit: is missing");
  CHECK(error_of("submit,run,gpus\n1,\"2,1\n", TraceFormat::csv) ==
        "t:2: a quote is not closed on its line");
  CHECK(error_of("1 -1 0 5 1 -1 -1 1 9\n", TraceFormat::swf) ==
        "t:1: submit time: must not be negative");
  CHECK(error_of("1 0 0 nan 1 -1 -1 1 9\n", TraceFormat::swf) ==
        "t:1: run time: must be a number, not \"nan\"");
  CHECK(error_of("1 0 0 1e14 1 -1 -1 1 9\n", TraceFormat::swf) ==
        "t:1: run time: must be seconds, at most 3153600000, not 100000000000000");
  CHECK(error_of("\x1f\x8b\b", TraceFormat::swf).starts_with("t: is packed by gzip; a trace is"));
  CHECK(error_of("[{\"run\": 1, \"gpus\": 1}]", TraceFormat::json) == "t:1: submit: is missing");
  CHECK(
      error_of("[{\"run\": 1,\n \"gpu\": 2}]", TraceFormat::json).starts_with("t:1: gpu: no such"));
  CHECK(error_of("[\n{\"submit\": 1, \"run\": 1}, {\"run\": [], \"gpus\": 2}]",
                 TraceFormat::json) == "t:2: run: must be a number or a text");
  CHECK(error_of("[{\"run\": 1", TraceFormat::json).starts_with("t:1: "));
  CHECK(error_of("12", TraceFormat::json).starts_with("t:1: must be a list of jobs"));
  CHECK(error_of("submit,run,gpus\n", TraceFormat::csv) == "t: no job in it that ran");
  CHECK(read_trace("/nonexistent.swf", {}).error().message ==
        "/nonexistent.swf: No such file or directory");
}

TEST_CASE("real SWF files are read: unknown values, parts of jobs, odd numbers and lines") {
  const auto trace = parse(
      "\xef\xbb\xbf;\tVersion: 2.2\r\n"
      ";  MaxProcs: 4\r\n"
      // it has requested processors only
      "\t3  30\t-1 10.5 -1 -1 -1 2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\r\n"
      "1 +40 0 1e2 2 -1 -1 -1 60 -1 1 5 6 -1 9 -1 -1 -1\r\n"  // it has allocated processors only
      "2 20 0 50 1 -1 -1 1 60 -1 1 5 6 -1 9 -1 -1 -1 77\r\n"  // this line has one number too many
      "2 20 0 20 1 -1 -1 1 60 -1 2 5 6 -1 9 -1 -1 -1\r\n"     // a part of job 2
      "2 45 0 30 1 -1 -1 1 60 -1 3 5 6 -1 9 -1 -1 -1\r\n"
      // a part of a job that has no line of its own
      "7 50 0 30 1 -1 -1 1 60 -1 3 5 6 -1 9 -1 -1 -1\r\n"
      "-1 50 0 30 1 -1 -1 1 60 -1 1 5 6 -1 9 -1 -1 -1\r\n"  // a job without a number
      "8 50 0 0 1 -1 -1 1 60 -1 5 5 6 -1 9 -1 -1 -1\r\n"    // a job that was cancelled
      "9 51 0 -1 1 -1 -1 1 60 -1 0 5 6 -1 9 -1 -1 -1\r\n"
      // no processors, and no newline at the end
      "10 52 0 10 -1 -1 -1 -1 60 -1 1 5 6 -1 9 -1 -1 -1",
      TraceFormat::swf);
  REQUIRE_MESSAGE(trace, trace.error().message);
  std::vector<std::uint64_t> ids;
  for (const TraceJob& job : trace->jobs) ids.push_back(job.id);
  CHECK(ids == std::vector<std::uint64_t>{2, 3, 1, 7, 7});
  CHECK(trace->jobs[0].run == seconds(50));
  CHECK(trace->jobs[1].processors == 2);
  CHECK(trace->jobs[1].run == milliseconds(10'500));
  CHECK(!trace->jobs[1].limit);
  CHECK(trace->jobs[1].tenant == "");
  CHECK(trace->jobs[2].run == seconds(100));
  CHECK(trace->notes ==
        std::vector<std::string>{
            "2 lines are parts of jobs that have a line for all of it, and were left out",
            "1 lines have more than 18 numbers; the rest was left out",
            "2 jobs that never ran were left out; the first is t:10",
            "1 jobs that ask for neither GPUs nor cores were left out; the first is t:12",
            "1 jobs ran longer than their limit and are cut off there"});
}

TEST_CASE("real CSV files are read: separators, quotes, missing values, times, other names") {
  const auto trace = parse(
      "\xef\xbb\xbfjob_id;\"VC\";Submit_Time;duration;state;gpu_num;cpu_num;user;\r\n"
      "7;\"team \"\"a\"\"; b\";2020-04-01T00:00:10.5+08:00; 60 ;COMPLETED;2;NaN;u;\r\n"
      "8; b ;2020-03-31 16:00:09Z;30;;-1;4.0;null;;\r\n"
      "9;b;2020-03-31 16:00:09 UTC;None;FAILED;1;4;u;\r\n"
      "10;b;2020-03-31 16:00:09;5;FAILED;0;0;u;\r\n",
      TraceFormat::csv);
  REQUIRE_MESSAGE(trace, trace.error().message);
  REQUIRE(trace->jobs.size() == 2);
  CHECK(trace->jobs[0].id == 8);
  CHECK(trace->jobs[0].gpus == 0);
  CHECK(trace->jobs[0].cpus == 4);
  CHECK(trace->jobs[0].user == "");
  CHECK(trace->jobs[1].tenant == "team \"a\"; b");
  CHECK(trace->jobs[1].submit - trace->jobs[0].submit == milliseconds(1'500));
  CHECK(trace->notes ==
        std::vector<std::string>{
            "columns that are not used: state",
            "1 jobs that never ran were left out; the first is t:4",
            "1 jobs that ask for neither GPUs nor cores were left out; the first is t:5"});
  CHECK(error_of("submit,run,gpus\n2020-04-01 00:00:10 PST,1,1\n", TraceFormat::csv)
            .starts_with("t:2: submit: must be seconds, a length"));
  CHECK(parse("submit\trun\tcpus\n1\t2\t3\n", TraceFormat::csv)->jobs[0].cpus == 3);
}

TEST_CASE("JSON with one object on each line is read") {
  const auto trace = parse(
      "{\"submit\": 5, \"run\": 9, \"gpus\": 2}\n{\"submit\": 3, \"run\": \"1m\", \"cpus\": 1}\n",
      TraceFormat::json);
  REQUIRE_MESSAGE(trace, trace.error().message);
  REQUIRE(trace->jobs.size() == 2);
  CHECK(trace->jobs[0].run == minutes(1));
  CHECK(error_of("{\"submit\": 5, \"run\": 9, \"gpus\": 2}\n7\n", TraceFormat::json) ==
        "t:2: must be an object, or the list's end");
}

TEST_CASE("a file is recognised by its content, whatever the case of its name") {
  const char* folder = std::getenv("TMPDIR");
  const std::string path =
      fmt::format("{}/trace-{}.SWF.GZ", folder != nullptr ? folder : "/tmp", ::getpid());
  const std::string line = "1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 -1 -1 -1\n";
  std::ofstream(path) << line;  // a plain file with a name that ends in .GZ
  const auto plain = read_trace(path, {});
  REQUIRE_MESSAGE(plain, plain.error().message);
  CHECK(plain->jobs.size() == 1);
  std::ofstream(path, std::ios::trunc) << "\x1f\x8b" << line;
  const auto broken = read_trace(path, {});
  REQUIRE(!broken);
  CHECK(broken.error().message == path + ": gzip cannot unpack it");
  std::ofstream(path, std::ios::trunc) << "";
  CHECK(read_trace(path, {}).error().message == path + ": no job in it that ran");
  std::remove(path.c_str());
  CHECK(read_trace("/tmp/trace.txt", {})
            .error()
            .message.starts_with("/tmp/trace.txt: a trace's name ends in"));
}

TEST_CASE("drawn limits are never below the run time, are usual values, and are reproducible") {
  Trace trace;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    TraceJob job;
    job.id = i;
    job.run = seconds(static_cast<std::int64_t>(i * 97));
    trace.jobs.push_back(job);
  }
  Trace again = trace;
  draw_limits(trace, 4);
  draw_limits(again, 4);
  std::size_t more = 0;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    REQUIRE(job.limit >= job.run);
    CHECK(job.limit->us % minutes(5).us == 0);
    CHECK(job.limit == again.jobs[i].limit);
    more += *job.limit > job.run * 2 ? 1 : 0;
  }
  CHECK(more > 300);
}

}  // namespace
}  // namespace gantry::replay
