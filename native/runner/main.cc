// as2d-runner: the engine on its own, for a machine without Python. See job.h.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "as2d/error.h"
#include "as2d/runtime/ort.h"
#include "bench.h"
#include "drafts.h"
#include "facts.h"
#include "job.h"
#include "profile.h"
#include "report.h"
#include "stop.h"

namespace as2d::runner {
namespace {

constexpr const char* kUsage =
    "usage: as2d-runner run JOB        do a job ('-': from standard input)\n"
    "       as2d-runner facts [FILE]   tell about the machine, and whether FILE is an ONNX Runtime "
    "library that works here\n";

constexpr const char* kResultFormat = "as2d-result-1";

const char* NameOf(Job::Kind kind) {
  switch (kind) {
    case Job::Kind::kBench:
      return "bench";
    case Job::Kind::kProfile:
      return "profile";
    case Job::Kind::kDrafts:
      return "drafts";
  }
  return "";
}

void Begin(Report& report, const char* job) {
  report.Line("begin", [&](Json& json) { json.Field("format", kResultFormat).Field("job", job); });
}

Status Facts(const std::optional<std::string>& library, Report& report) {
  Begin(report, "facts");
  const Machine machine;
  std::optional<std::string> version;
  std::optional<std::string> problem;
  try {
    if (library) version = Runtime::Open(*library)->version();
  } catch (const Error& error) {
    problem = error.what();
  }
  machine.Tell(report, version, problem);
  machine.TellMoment(report);
  return problem ? Status::kFailed : Status::kDone;
}

Job ReadJob(const std::string& file) {
  try {
    if (file == "-") return Job::Read(std::cin, "standard input");
    std::ifstream stream(file);
    return Job::Read(stream, file);
  } catch (const Error& error) {
    throw Stopped{Status::kUsage, error.what()};
  }
}

Status DoJob(const std::string& file, Report& report, Stop& stop) {
  const Job job = ReadJob(file);
  stop.SetDeadline(job.deadline);
  Begin(report, NameOf(job.kind));
  const auto runtime = Runtime::Open(job.library);  // stays open between engines
  const Machine machine;
  machine.Tell(report, runtime->version(), std::nullopt);
  machine.TellMoment(report);
  bool as_promised = true;
  switch (job.kind) {
    case Job::Kind::kBench:
      as_promised = RunBench(job, machine, report, stop);
      break;
    case Job::Kind::kProfile:
      RunProfile(job, report, stop);
      break;
    case Job::Kind::kDrafts:
      RunDrafts(job, report, stop);
      break;
  }
  machine.TellMoment(report);
  return as_promised ? Status::kDone : Status::kDiffers;
}

int Main(const std::string& command, const std::optional<std::string>& file) {
  Report report(STDOUT_FILENO);
  Status status = Status::kFailed;
  std::string message;
  Stop stop(report);
  try {
    try {
      status = command == "facts" ? Facts(file, report) : DoJob(*file, report, stop);
    } catch (const Cancelled&) {
      stop.Check();
      throw;
    }
  } catch (const Stopped& stopped) {
    status = stopped.status;
    message = stopped.message;
  } catch (const std::exception& error) {
    message = error.what();
  }
  if (!message.empty()) std::fprintf(stderr, "as2d-runner: %s\n", message.c_str());
  report.End(status, message);
  return ExitCode(status);
}

}  // namespace
}  // namespace as2d::runner

int main(int count, char** arguments) {
  const std::string_view command = count > 1 ? arguments[1] : "";
  const bool known = (command == "run" && count == 3) || (command == "facts" && count <= 3);
  if (!known) {
    std::fputs(as2d::runner::kUsage, stderr);
    return as2d::runner::ExitCode(as2d::runner::Status::kUsage);
  }
  try {
    return as2d::runner::Main(std::string(command),
                              count > 2 ? std::optional<std::string>(arguments[2]) : std::nullopt);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "as2d-runner: %s\n", error.what());
    return as2d::runner::ExitCode(as2d::runner::Status::kFailed);
  }
}
